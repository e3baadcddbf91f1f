import type { AxiosStatic } from 'axios' with { 'resolution-mode': 'import' };

export declare function loadAxios(): AxiosStatic;
