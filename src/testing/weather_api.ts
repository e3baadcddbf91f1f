/**
 * A fake of weatherapi.com on loopback for development and tests. It is a real HTTP server that answers `GET
 * /v1/current.json` in the documented format, with weather that depends only on the place.
 */
import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Loopback, listenOnLoopback } from './fakes.ts';

/** The only API key that the fake accepts. */
export const DEV_API_KEY = 'key-of-the-fake-weather-api';

/** Maximum number of requested places that the fake remembers. */
const MAX_ASKED = 10_000;

/** Interval in seconds at which the real service refreshes a place. */
const REFRESH_SECONDS = 900;

type Answer = (response: ServerResponse, place: string) => void;

/** Locations with a faulty or unusual answer. Request one of them to see how the server handles it. */
export const FAILURES = {
  '!unknown': (response) => refuse(response, 400, 1006, 'No matching location found.'),
  '!key': (response) => refuse(response, 401, 2006, 'API key provided is invalid'),
  '!disabled': (response) => refuse(response, 403, 2008, 'API key has been disabled.'),
  '!quota': (response) => refuse(response, 403, 2007, 'API key has exceeded calls per month quota.'),
  '!refused': (response) => refuse(response, 418, 9000, 'no'),
  '!broken': (response) => refuse(response, 500, 9999, 'Internal application error.'),
  '!redirect': (response) => response.writeHead(302, { location: '/v1/current.json?q=Paris' }).end(),
  '!empty': (response) => response.writeHead(204).end(),
  '!timeout': () => {},
  '!reset': (response) => response.destroy(),
  '!cut': (response) => {
    response.writeHead(200, { 'content-length': 1000 }).write('{');
    setTimeout(() => response.destroy(), 50);
  },
  '!drip': (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const timer = setInterval(() => response.write(' '), 100);
    response.once('close', () => clearInterval(timer));
  },
  '!garbage': (response) => response.end('<html>it is sunny</html>'),
  // This reading is valid, except for the byte 0xff in one of its strings.
  '!notutf8': (response, place) =>
    response.end(Buffer.from(JSON.stringify(reading(place, { condition: { text: '\u00ff' } })), 'latin1')),
  '!missing': (response) => json(response, 200, { location: { name: 'Nowhere' }, current: {} }),
  '!text': (response, place) => json(response, 200, reading(place, { temp_c: '13' })),
  '!plasma': (response, place) => json(response, 200, reading(place, { temp_c: 1e30 })),
  '!oversized': (response) => response.end(JSON.stringify({ padding: 'x'.repeat(1024 ** 2) })),
  '!stale': (response, place) => json(response, 200, reading(place, { last_updated_epoch: now() - 3601 })),
  '!future': (response, place) => json(response, 200, reading(place, { last_updated_epoch: now() + 120 })),
  '!cold': (response, place) => json(response, 200, reading(place, { temp_c: -0.4 })),
} satisfies Record<string, Answer>;

type Failure = keyof typeof FAILURES;

function now(): number {
  return Math.floor(Date.now() / 1000);
}

/** Returns a temperature from 0 to 34.9 °C, derived from the SHA-256 of the location, regardless of case. */
export function computeTemperature(place: string): number {
  return (createHash('sha256').update(place.toLowerCase()).digest().readUInt16BE() % 350) / 10;
}

function reading(place: string, current: object = {}): object {
  const epoch = now();
  return {
    location: { name: place.slice(0, 40), country: 'Nowhere', lat: 0, lon: 0, localtime_epoch: epoch },
    current: {
      last_updated_epoch: epoch - (epoch % REFRESH_SECONDS),
      temp_c: computeTemperature(place),
      is_day: 1,
      ...current,
    },
  };
}

function json(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function weather(response: ServerResponse, place: string): void {
  json(response, 200, reading(place));
}

function refuse(response: ServerResponse, status: number, code: number, message: string): void {
  json(response, status, { error: { code, message } });
}

export interface FakeWeatherApi extends Loopback {
  /** Places of the latest 10,000 requests, in order. */
  readonly asked: readonly string[];
}

/** Starts the fake on a free port of 127.0.0.1. @param beforeAnswer awaited before each answer */
export async function startFakeWeatherApi(
  beforeAnswer: () => Promise<void> = async () => {},
): Promise<FakeWeatherApi> {
  const requestedPlaces: string[] = [];
  const loopback = await listenOnLoopback((request, response) => {
    void beforeAnswer().then(() => answer(request, response, requestedPlaces));
  }, 'api.weatherapi.com');
  return { ...loopback, asked: requestedPlaces };
}

function answer(request: IncomingMessage, response: ServerResponse, requestedPlaces: string[]): void {
  const url = new URL(request.url ?? '/', 'http://fake');
  if (request.method !== 'GET' || url.pathname !== '/v1/current.json') {
    refuse(response, 404, 1005, 'API URL is invalid.');
    return;
  }
  const key = url.searchParams.get('key');
  const place = url.searchParams.get('q');
  if (!key) refuse(response, 401, 1002, 'API key is invalid or not provided.');
  else if (key !== DEV_API_KEY) refuse(response, 401, 2006, 'API key provided is invalid');
  else if (!place) refuse(response, 400, 1003, 'Parameter q is missing.');
  else {
    requestedPlaces.push(place);
    if (requestedPlaces.length > MAX_ASKED) requestedPlaces.shift();
    const sendAnswer: Answer = Object.hasOwn(FAILURES, place) ? FAILURES[place as Failure] : weather;
    sendAnswer(response, place);
  }
}
