import { isUtf8 } from 'node:buffer';
import express, { type RequestHandler } from 'express';
import { MalformedJson, UnsupportedMediaType } from './errors.ts';

/**
 * Reads a JSON body of at most `limitBytes`. Bytes that are not UTF-8 are refused rather than replaced:
 * what is signed later must be what was sent.
 */
export function jsonBody(limitBytes: number): RequestHandler[] {
  return [
    (request, _response, next) => {
      if (!request.is('application/json')) {
        throw new UnsupportedMediaType('send the body as Content-Type: application/json');
      }
      next();
    },
    express.json({
      limit: limitBytes,
      inflate: false,
      verify(_request, _response, bytes, charset) {
        if (charset !== 'utf-8') throw new UnsupportedMediaType('the charset must be utf-8');
        if (!isUtf8(bytes)) throw new MalformedJson('the body is not UTF-8');
      },
    }),
    (request, _response, next) => {
      if (request.body === undefined) throw new MalformedJson('the body is empty: a JSON object is wanted');
      next();
    },
  ];
}
