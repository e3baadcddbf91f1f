import { CopyButton } from './copy_button.tsx';

/** Bytes in hexadecimal, or an id: monospaced, whole, and to copy. @param name what it is */
export function Bytes({ hex, name }: { readonly hex: string; readonly name: string }) {
  return (
    <span className="bytes">
      <code>{hex}</code>
      <CopyButton text={hex} name={name} />
    </span>
  );
}
