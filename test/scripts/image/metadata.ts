import type { Metadata } from '../../../scripts/image/eif/format.ts';

/** Of an image whose metadata doesn't matter: it is not measured. */
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
