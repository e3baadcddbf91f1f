/**
 * Defines the board for Grafana, `deploy/observe/board.json`: its panels, and their queries to Prometheus.
 */
import {
  DashboardBuilder,
  DatasourceVariableBuilder,
  RowBuilder,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder } from '@grafana/grafana-foundation-sdk/timeseries';

export interface BoardPanel {
  readonly title: string;
  /** Unit of the values, by its name in Grafana. */
  readonly unit: 'short' | 's' | 'bytes' | 'reqps' | 'percentunit';
  /** Expressions for Prometheus, by the legends of their series. */
  readonly expressions: Readonly<Record<string, string>>;
}

const percentile95 = (name: string, by: string) =>
  `histogram_quantile(0.95, sum by (le, ${by}) (rate(${name}_bucket[5m])))`;
const rateBy = (name: string, by: string) => `sum by (${by}) (rate(${name}_total[5m]))`;

/** Panels of each row, by the title of the row. */
export const BOARD: Readonly<Record<string, readonly BoardPanel[]>> = {
  Enclaves: [
    {
      title: 'Answers, and has its secrets and a confirmed clock',
      unit: 'short',
      expressions: {
        '{{enclave}} answers': 'up{job="enclave"}',
        '{{enclave}} has its secrets': 'sui_enclave_secrets_missing == bool 0',
        '{{enclave}} clock': 'sui_enclave_clock_confirmed',
        '{{enclave}} runs all its parts': '1 - sui_enclave_part_ended',
      },
    },
    {
      title: 'Requests',
      unit: 'reqps',
      expressions: {
        '{{enclave}} sealed': rateBy('sui_enclave_sealed_requests', 'enclave'),
        '{{enclave}} plain, {{outcome}}': rateBy('sui_enclave_plain_requests', 'enclave, outcome'),
      },
    },
    {
      title: 'Refusals of plain requests',
      unit: 'reqps',
      expressions: { '{{enclave}} {{code}}': rateBy('sui_enclave_plain_refusals', 'enclave, code') },
    },
    {
      title: 'Duration of plain requests, 95th percentile',
      unit: 's',
      expressions: { '{{enclave}}': percentile95('sui_enclave_plain_request_seconds', 'enclave') },
    },
    {
      title: 'Signatures and upstream requests of plain requests',
      unit: 'reqps',
      expressions: {
        '{{enclave}} signatures': rateBy('sui_enclave_plain_signatures', 'enclave'),
        '{{enclave}} upstream, {{outcome}}': rateBy(
          'sui_enclave_plain_upstream_requests',
          'enclave, outcome',
        ),
      },
    },
    {
      title: 'Uncaught errors and dropped events, in an hour',
      unit: 'short',
      expressions: {
        '{{enclave}} errors': 'increase(sui_enclave_uncaught_errors_total[1h])',
        '{{enclave}} events': 'increase(sui_enclave_events_dropped_total[1h])',
      },
    },
    {
      title: 'Runs of tasks',
      unit: 'reqps',
      expressions: {
        '{{enclave}} {{task}}, {{outcome}}': rateBy('sui_enclave_task_runs', 'enclave, task, outcome'),
      },
    },
    {
      title: 'Runs of tasks that failed in a row',
      unit: 'short',
      expressions: { '{{enclave}} {{task}}': 'sui_enclave_task_failures' },
    },
    {
      title: 'CPU',
      unit: 'percentunit',
      expressions: { '{{enclave}}': 'rate(process_cpu_seconds_total{job="enclave"}[5m])' },
    },
    {
      title: 'Memory',
      unit: 'bytes',
      expressions: { '{{enclave}}': 'process_resident_memory_bytes{job="enclave"}' },
    },
    {
      title: 'Longest delay of the event loop',
      unit: 's',
      expressions: { '{{enclave}}': 'sui_enclave_event_loop_delay_seconds' },
    },
  ],
  'Parent instances': [
    {
      title: 'Connections through the relay',
      unit: 'short',
      expressions: { '{{enclave}} {{direction}}': 'relay_connections' },
    },
    {
      title: 'Refused by the relay',
      unit: 'reqps',
      expressions: {
        '{{enclave}} {{direction}} {{reason}}': rateBy('relay_refused', 'enclave, direction, reason'),
        'unknown enclaves': rateBy('relay_unknown_cid', 'instance'),
      },
    },
    {
      title: 'Reports and events',
      unit: 'reqps',
      expressions: {
        '{{enclave}} {{kind}}': rateBy('relay_lines', 'enclave, kind'),
        '{{enclave}} {{kind}}, dropped': rateBy('relay_dropped_lines', 'enclave, kind'),
      },
    },
  ],
  'Registration and secrets': [
    {
      title: 'Enclaves that contracts accept',
      unit: 'short',
      expressions: {
        accepted: 'sui_enclave_keeper_accepted_enclaves',
        silent: 'sui_enclave_keeper_silent_enclaves',
      },
    },
    {
      title: "The keeper's alerts",
      unit: 'short',
      expressions: { '{{code}}': 'sui_enclave_keeper_alerts' },
    },
    {
      title: 'Gas in a day, in MIST',
      unit: 'short',
      expressions: { used: 'sui_enclave_keeper_gas_mist', left: 'sui_enclave_keeper_gas_left_mist' },
    },
    {
      title: "The poster's transactions and alerts",
      unit: 'short',
      expressions: {
        'in flight': 'sui_enclave_poster_in_flight',
        '{{code}}': 'sui_enclave_poster_alerts',
      },
    },
    {
      title: "The poster's gas, in MIST",
      unit: 'short',
      expressions: {
        'used, {{window}}': 'sui_enclave_poster_gas_mist',
        'left, {{window}}': 'sui_enclave_poster_gas_left_mist',
      },
    },
    {
      title: 'Age of the last round and of the last poll',
      unit: 's',
      expressions: {
        keeper: 'time() - sui_enclave_keeper_last_round_seconds',
        poster: 'time() - sui_enclave_poster_last_round_seconds',
        'value of the poster': 'time() - sui_enclave_poster_last_value_seconds',
        provisioner: 'time() - sui_enclave_provision_last_poll_seconds',
      },
    },
    {
      title: "The provisioner's polls, by finding",
      unit: 'reqps',
      expressions: { '{{found}}': rateBy('sui_enclave_provision_polls', 'found') },
    },
  ],
  'Proving service': [
    {
      title: 'Requests for proofs',
      unit: 'reqps',
      expressions: { '{{code}}': rateBy('sui_enclave_prover_frontend_requests', 'code') },
    },
    {
      title: 'Duration of the parts of a request in the front end, 95th percentile',
      unit: 's',
      expressions: { '{{part}}': percentile95('sui_enclave_prover_frontend_part_seconds', 'part') },
    },
    {
      title: 'Duration of the parts of a proof in the backend, 95th percentile',
      unit: 's',
      expressions: { '{{part}}': percentile95('sui_enclave_prover_backend_part_seconds', 'part') },
    },
    {
      title: 'Waiting',
      unit: 'short',
      expressions: {
        '{{instance}} places': 'sui_enclave_prover_frontend_places',
        '{{instance}} waiting': 'sui_enclave_prover_backend_waiting',
        'queue of HAProxy': 'haproxy_backend_current_queue{proxy="backends"}',
      },
    },
    {
      title: 'In service',
      unit: 'short',
      expressions: {
        '{{instance}} front end': 'sui_enclave_prover_frontend_ready',
        '{{instance}} backend': 'sui_enclave_prover_backend_ready',
        'backends of HAProxy': 'haproxy_backend_active_servers{proxy="backends"}',
      },
    },
    {
      title: 'Restarts of engines in an hour, and their code paths',
      unit: 'short',
      expressions: {
        '{{instance}} restarts': 'increase(sui_enclave_prover_backend_engine_restarts_total[1h])',
        '{{path}}, {{network}}': 'count by (path, network) (sui_enclave_prover_backend_engine_info)',
      },
    },
    {
      title: 'Answers through HAProxy',
      unit: 'reqps',
      expressions: { '{{code}}': 'rate(haproxy_backend_http_responses_total{proxy="backends"}[5m])' },
    },
  ],
};

// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of Grafana
const SOURCE = { type: 'prometheus', uid: '${source}' };

/** Returns the board's JSON, which depends only on the code. */
export function formatBoard(): string {
  const board = new DashboardBuilder('sui-enclave')
    .uid('sui-enclave')
    .tags(['sui-enclave'])
    .timezone('utc')
    .time({ from: 'now-6h', to: 'now' })
    .refresh('30s')
    .withVariable(new DatasourceVariableBuilder('source').label('Prometheus').type('prometheus'));
  for (const [title, panels] of Object.entries(BOARD)) {
    board.withRow(new RowBuilder(title));
    for (const panel of panels) board.withPanel(createPanel(panel));
  }
  return `${JSON.stringify(board.build(), null, 2)}\n`;
}

function createPanel({ title, unit, expressions }: BoardPanel): PanelBuilder {
  const panel = new PanelBuilder().title(title).datasource(SOURCE).unit(unit).min(0).span(8).height(8);
  for (const [index, [legend, expression]] of Object.entries(expressions).entries()) {
    const query = new DataqueryBuilder().expr(expression).legendFormat(legend);
    panel.withTarget(query.refId(String.fromCharCode(65 + index)));
  }
  return panel;
}
