import type { Metadata } from '../../../../src/cli/image/eif/format.ts';

/** Metadata of the images in tests. No register measures it, so its content doesn't matter. */
export const METADATA: Metadata = {
  ImageName: 'n',
  ImageVersion: '1',
  BuildMetadata: {
    BuildTime: 't',
    BuildTool: 't',
    BuildToolVersion: '1',
    OperatingSystem: 'Linux',
    KernelVersion: '6',
  },
  DockerInfo: null,
  CustomMetadata: null,
};
