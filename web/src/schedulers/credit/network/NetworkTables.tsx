/** The network as tables: everybody with where they stand, and every line with how far it is used. */

import { useSignal } from "@preact/signals";

import type { Link, Node } from "../../../api/types";
import type { Column } from "../../../components/DataTable";
import { DataTable } from "../../../components/DataTable";
import { amount } from "../wording";
import type { Chosen, Network } from "./model";
import { nameOf, usedShare } from "./model";

interface NetworkTablesProps {
  readonly network: Network;
  readonly chosen: Chosen;
  readonly onChoose: (chosen: Chosen) => void;
}

export function NetworkTables({ network, chosen, onChoose }: NetworkTablesProps) {
  const open = useSignal(false);
  return (
    <details
      class="fold"
      data-testid="network-tables"
      onToggle={(event) => (open.value = (event.currentTarget as HTMLDetailsElement).open)}
    >
      <summary>The same as tables</summary>
      {/* Hundreds of rows that follow every payment: only while somebody looks at them. */}
      {open.value && (
        <div class="network-tables">
          <DataTable
            caption="Participants"
            columns={nodeColumns(onChoose)}
            rows={[...network.nodes.values()]}
            rowKey={({ id }) => id}
            current={({ id }) => chosen?.kind === "node" && chosen.id === id}
            empty="Nobody is in this network."
            testId="participants"
          />
          <DataTable
            caption="Lines"
            columns={lineColumns(network, onChoose)}
            rows={[...network.links.values()]}
            rowKey={({ source, target }) => `${source}\u0000${target}`}
            current={({ source, target }) => chosen?.kind === "line" && chosen.from === source && chosen.to === target}
            empty="Nobody trusts anybody in this network."
            testId="lines"
          />
        </div>
      )}
    </details>
  );
}

function nodeColumns(onChoose: (chosen: Chosen) => void): Column<Node>[] {
  return [
    {
      key: "participant",
      title: "participant",
      by: ({ name, id }) => name ?? id,
      cell: ({ name, id }) => (
        <button type="button" class="link-button" onClick={() => onChoose({ kind: "node", id })}>
          {name ?? id}
        </button>
      ),
    },
    { key: "type", title: "type", by: ({ type }) => type, cell: ({ type }) => type },
    {
      key: "position",
      title: "position",
      numeric: true,
      by: ({ net_balance }) => Number(net_balance),
      cell: ({ net_balance }) => amount(net_balance),
    },
    { key: "lines", title: "lines", numeric: true, by: (node) => node.links_count, cell: (node) => node.links_count },
    { key: "status", title: "status", by: ({ status }) => status, cell: ({ status }) => status },
  ];
}

function lineColumns(network: Network, onChoose: (chosen: Chosen) => void): Column<Link>[] {
  return [
    {
      key: "line",
      title: "who trusts whom",
      by: ({ source, target }) => `${source} ${target}`,
      cell: ({ source, target }) => (
        <button type="button" class="link-button" onClick={() => onChoose({ kind: "line", from: source, to: target })}>
          {nameOf(network, source)} → {nameOf(network, target)}
        </button>
      ),
    },
    {
      key: "used",
      title: "owed",
      numeric: true,
      by: ({ used }) => Number(used),
      cell: ({ used }) => amount(used),
    },
    {
      key: "limit",
      title: "limit",
      numeric: true,
      by: (link) => Number(link.trust_limit),
      cell: (link) => amount(link.trust_limit),
    },
    {
      key: "use",
      title: "used",
      numeric: true,
      by: usedShare,
      cell: (link) => `${Math.round(100 * usedShare(link))} %`,
    },
  ];
}
