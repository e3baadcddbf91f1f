import { useId } from 'react';

const NETWORKS = {
  mainnet: 'https://fullnode.mainnet.sui.io:443',
  testnet: 'https://fullnode.testnet.sui.io:443',
  devnet: 'https://fullnode.devnet.sui.io:443',
  localnet: 'http://127.0.0.1:9000',
} as const;

interface Props {
  readonly node: string;
  readonly onNode: (node: string) => void;
}

/** Writes the address of a network's public node into the field beside this one. */
export function NetworkField({ node, onNode }: Props) {
  const id = useId();
  const chosen = Object.entries(NETWORKS).find(([, url]) => url === node.trim())?.[0] ?? '';
  return (
    <div className="ds-field field">
      <label className="ds-label" htmlFor={id}>
        Network
      </label>
      <select
        id={id}
        className="ds-input"
        value={chosen}
        onChange={(event) => {
          const name = event.target.value;
          onNode(name in NETWORKS ? NETWORKS[name as keyof typeof NETWORKS] : '');
        }}
      >
        <option value="">another</option>
        {Object.keys(NETWORKS).map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </div>
  );
}
