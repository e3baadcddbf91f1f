/** Metrics of the backend. */
import { Counter, Gauge } from 'prom-client';
import type { EnginePath } from '../engine.ts';
import { ProverMetrics } from '../metrics.ts';
import { BACKEND_ERRORS } from './errors.ts';
import { BACKEND_PARTS, type BackendPart, type Proofs } from './proofs.ts';
import type { Supervisor } from './supervisor.ts';

const PREFIX = 'sui_enclave_prover_backend';

export interface BackendFigures {
  readonly proofs: Pick<Proofs, 'waiting' | 'isStopping'>;
  readonly supervisor: Pick<Supervisor, 'hasWorker' | 'restarts'>;
  readonly engine: EnginePath;
  /** Network whose validators accept the proofs. */
  readonly network: string;
}

export function backendMetrics(codes = Object.keys(BACKEND_ERRORS)): ProverMetrics<BackendPart> {
  return new ProverMetrics(PREFIX, '/input', codes, BACKEND_PARTS);
}

export function addBackendFigures({ registry }: ProverMetrics<BackendPart>, figures: BackendFigures): void {
  const registers = [registry];
  const { proofs, supervisor, engine, network } = figures;
  new Gauge({
    name: `${PREFIX}_waiting`,
    help: 'Requests that wait for the proof in progress.',
    registers,
    collect() {
      this.set(proofs.waiting);
    },
  });
  new Gauge({
    name: `${PREFIX}_ready`,
    help: '1 if an engine has loaded the key and the backend is not stopping, else 0.',
    registers,
    collect() {
      this.set(supervisor.hasWorker && !proofs.isStopping ? 1 : 0);
    },
  });
  new Counter({
    name: `${PREFIX}_engine_restarts_total`,
    help: 'Attempts to start an engine in place of one that had ended.',
    registers,
    collect() {
      this.reset();
      this.inc(supervisor.restarts);
    },
  });
  new Gauge({
    name: `${PREFIX}_engine_info`,
    help: 'The code path of the engine, and the network of its key.',
    labelNames: ['path', 'network'],
    registers,
  }).set({ path: engine, network }, 1);
}
