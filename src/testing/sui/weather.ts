/** A model of the functions of `move/weather`. */
import { bcs } from '@mysten/sui/bcs';
import { text, u64 } from 'sui-enclave/wire/bcs';
import { signedType } from 'sui-enclave/wire/intent';
import type { MoveFunction } from './call.ts';
import { assertSigned, ofOneConfig } from './enclave.ts';
import { Nft } from './structs.ts';

/** `WeatherResponse` of the Move module `weather`. */
const WeatherResponse = signedType(0, bcs.struct('WeatherResponse', { location: text, temperature: u64 }));

/** By module and name. */
export const WEATHER: Readonly<Record<string, MoveFunction>> = {
  'weather::update_weather': (frame) => {
    const { enclave, config } = ofOneConfig(frame, 4, 5);
    const location = bcs.string().parse(frame.pure(0));
    const [temperature = 0n, timestamp_ms = 0n] = [1, 2].map((index) =>
      BigInt(bcs.u64().parse(frame.pure(index))),
    );
    const payload = { location, temperature };
    const message = WeatherResponse.message.serialize({ intent: 0, timestamp_ms, payload }).toBytes();
    assertSigned(frame, enclave, config, timestamp_ms, message, bcs.byteVector().parse(frame.pure(3)));
    const content = (id: string) => Nft.serialize({ id, ...payload, timestamp_ms }).toBytes();
    return frame.returned(`${frame.context.original(frame.call.package)}::weather::WeatherNFT`, content);
  },
};
