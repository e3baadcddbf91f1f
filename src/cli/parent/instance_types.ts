/**
 * Judges by its name whether a type of EC2 instance can run this project's images. Only AWS knows all types.
 */

/** Families without the Nitro hypervisor. */
const WITHOUT_NITRO = /^([cm][1-4]|[rp][23]|r4|[dhi][12]|i3|g[23]|cc\d|cr1|hs1|cg1|x1e?|f1|t1)$/;
/**
 * Graviton families: their names have a `g` after the generation, as in m7g, c7gn and g5g. The family g5 is
 * x86-64.
 */
const GRAVITON = /^([a-z]+\d+g[a-z]*|a1)$/;
const SMALL = /^(nano|micro|small|medium|large)$/;

/** Advice for users whose type can't run an image. */
export const SUGGESTED_TYPES = 'm5.xlarge, c6i.xlarge or a larger type of these families';

/** Returns the reason why the type can't run an image; undefined if no reason is known. */
export function describeRefusal(type: string): string | undefined {
  const [family = '', size = ''] = type.split('.');
  if (GRAVITON.test(family)) return 'is arm64 (Graviton), and images are built for x86-64';
  if (/^(t\d|mac)/.test(family) || size.startsWith('metal') || WITHOUT_NITRO.test(family)) {
    return 'has no Nitro Enclaves: bare metal, Mac, the burstable types (T) and types without the Nitro hypervisor have none';
  }
  if (SMALL.test(size)) {
    return 'has too few CPUs: an enclave takes a core, which is two CPUs, and the parent keeps another core';
  }
  return undefined;
}
