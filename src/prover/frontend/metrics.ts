/** Metrics of the front end. */
import { Gauge } from 'prom-client';
import { PROVER_ERRORS } from '../errors.ts';
import { ProverMetrics } from '../metrics.ts';
import { FRONTEND_PARTS, type FrontendPart, type ProvingService } from './service.ts';

const PREFIX = 'sui_enclave_prover_frontend';

export function frontendMetrics(
  service: Pick<ProvingService, 'places' | 'readiness'>,
): ProverMetrics<FrontendPart> {
  const metrics = new ProverMetrics(PREFIX, '/v1', Object.keys(PROVER_ERRORS), FRONTEND_PARTS);
  const registers = [metrics.registry];
  new Gauge({
    name: `${PREFIX}_places`,
    help: 'Requests that have a place at the backend.',
    registers,
    collect() {
      this.set(service.places);
    },
  });
  new Gauge({
    name: `${PREFIX}_ready`,
    help: '1 if the backend reports that it can prove with the key of this network, else 0.',
    registers,
    async collect() {
      const ready = await service.readiness().then(
        () => 1,
        () => 0,
      );
      this.set(ready);
    },
  });
  return metrics;
}
