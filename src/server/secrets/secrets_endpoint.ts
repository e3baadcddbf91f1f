import type { Request, Response } from 'express';
import type { InFlight } from 'sui-enclave-service/http/in_flight';
import type { JsonBodies } from 'sui-enclave-service/http/json_body';
import { sendJson } from 'sui-enclave-service/http/respond';
import type { Logger } from 'sui-enclave-service/log';
import { sealAnswers } from '../sealing/sealed_answers.ts';
import type { Provisioning } from './provisioning.ts';

export interface SecretsParts {
  readonly provisioning: Provisioning;
  readonly bodies: JsonBodies;
  readonly inFlight: InFlight;
  readonly log: Logger;
  /** The value of `SEALED_PADDING_BYTES`. */
  readonly padding: number;
}

/**
 * Answers `POST /secrets`: takes sealed secrets from a provisioner, and returns the receipt for them. An
 * error before the message is opened is answered in the clear. Every later answer is sealed for the
 * provisioner, errors too.
 */
export async function answerSecrets(
  request: Request,
  response: Response,
  { provisioning, bodies, inFlight, log, padding }: SecretsParts,
): Promise<void> {
  const json = await bodies.read(request);
  await inFlight.work(response, async () => {
    const opened = await provisioning.open(json);
    sealAnswers(response, opened.answer, padding);
    const receipt = provisioning.accept(opened);
    log.info('the secrets have arrived, from a provisioner');
    sendJson(response, 200, receipt);
  });
}
