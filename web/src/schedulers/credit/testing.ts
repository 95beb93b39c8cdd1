/** Small networks and events for tests. */

import type { JsonObject } from "../../api/json";
import type { Link, Node, RunStatusView, Snapshot } from "../../api/types";
import type { Network } from "./network/model";
import { networkOf } from "./network/model";

export function node(id: string, change: Partial<Node> = {}): Node {
  return {
    id,
    name: id.toUpperCase(),
    type: "person",
    status: "active",
    links_count: 2,
    net_balance: "0.00",
    net_balance_atoms: "0",
    net_sign: 0,
    viz_color_key: "person",
    viz_shape_key: "circle",
    viz_size: { w: 16, h: 16 },
    viz_badge_key: null,
    ...change,
  };
}

export function link(source: string, target: string, change: Partial<Link> = {}): Link {
  return {
    source,
    target,
    trust_limit: "10.00",
    used: "0.00",
    available: "10.00",
    status: "active",
    viz_width_key: "mid",
    viz_alpha_key: "bg",
    viz_color_key: null,
    ...change,
  };
}

/** ann, bob and cid, each trusting the next. */
export function snapshot(change: Partial<Snapshot> = {}): Snapshot {
  return {
    equivalent: "HOUR",
    generated_at: "2026-01-01T00:00:00Z",
    nodes: ["ann", "bob", "cid"].map((id) => node(id)),
    links: [link("ann", "bob"), link("bob", "cid"), link("cid", "ann")],
    palette: {},
    limits: { max_nodes: null, max_links: null, max_particles: null },
    ...change,
  };
}

export function network(change: Partial<Snapshot> = {}): Network {
  return networkOf(snapshot(change));
}

/** bob pays ann 4 over the line from ann to bob. */
export function paid(change: JsonObject = {}): JsonObject {
  return {
    type: "tx.updated",
    event_id: "evt_r_000002",
    tick_index: 3,
    seq: 0,
    equivalent: "HOUR",
    from: "bob",
    to: "ann",
    amount: "4.00",
    edges: [{ from: "bob", to: "ann" }],
    node_patch: [{ id: "ann", net_balance: "4.00", net_balance_atoms: "400000000", net_sign: 1 }],
    edge_patch: [{ source: "ann", target: "bob", used: "4.00", available: "6.00", trust_limit: "10.00" }],
    ...change,
  };
}

export function refused(change: JsonObject = {}): JsonObject {
  return {
    type: "tx.failed",
    event_id: "evt_r_000003",
    tick_index: 3,
    seq: 1,
    equivalent: "HOUR",
    from: "bob",
    to: "ann",
    amount: "40.00",
    error: {
      code: "ROUTING_NO_CAPACITY",
      message: "No route for 34.00 of 40.00",
      details: { bottleneck: { from: "bob", to: "ann", available: "6.00" } },
    },
    ...change,
  };
}

export function cleared(change: JsonObject = {}): JsonObject {
  return {
    type: "clearing.done",
    event_id: "evt_r_000004",
    tick_index: 25,
    equivalent: "HOUR",
    plan_id: "clr_1",
    reason: "STATIC_CADENCE",
    cleared_cycles: 1,
    cleared_amount: "2.00",
    debt_reduction: "6.00",
    optimum: "8.00",
    cycle_edges: [
      { from: "ann", to: "bob" },
      { from: "bob", to: "cid" },
      { from: "cid", to: "ann" },
    ],
    ...change,
  };
}

export function status(change: Partial<RunStatusView> = {}): RunStatusView {
  return {
    api_version: "simulator-api/1",
    run_id: "run_1",
    scenario_id: "three",
    mode: "real",
    state: "running",
    started_at: null,
    stopped_at: null,
    stop_requested_at: null,
    stop_source: null,
    stop_reason: null,
    stop_client: null,
    sim_time_ms: 61_000,
    intensity_percent: 70,
    ops_sec: 1,
    queue_depth: 0,
    errors_total: 0,
    committed_total: 3,
    rejected_total: 1,
    attempts_total: 4,
    timeouts_total: 0,
    errors_last_1m: 0,
    consec_all_rejected_ticks: 0,
    last_error: null,
    last_event_type: null,
    current_phase: null,
    ...change,
  };
}
