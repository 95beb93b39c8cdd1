/** The network as tables: participants with their positions, lines with their use. */

import { useSignal } from "@preact/signals";

import type { Link, Node } from "../../../api/types";
import type { Column } from "../../../components/DataTable";
import { DataTable } from "../../../components/DataTable";
import { amount } from "../wording";
import type { Network, Selection } from "./model";
import { nameOf, usedShare } from "./model";

interface NetworkTablesProps {
  readonly network: Network;
  readonly chosen: Selection;
  readonly onChoose: (chosen: Selection) => void;
}

export function NetworkTables({ network, chosen, onChoose }: NetworkTablesProps) {
  const open = useSignal(false);
  return (
    <details
      class="fold"
      data-testid="network-tables"
      onToggle={(event) => (open.value = (event.currentTarget as HTMLDetailsElement).open)}
    >
      <summary>Show as tables</summary>
      {/* Hundreds of rows are updated on every payment, so they are rendered only while open. */}
      {open.value && (
        <div class="network-tables">
          <DataTable
            caption="Participants"
            columns={nodeColumns(onChoose)}
            rows={[...network.nodes.values()]}
            rowKey={({ id }) => id}
            current={({ id }) => chosen?.kind === "node" && chosen.id === id}
            empty="No participants."
            testId="participants"
          />
          <DataTable
            caption="Lines"
            columns={lineColumns(network, onChoose)}
            rows={[...network.links.values()]}
            rowKey={({ source, target }) => `${source}\u0000${target}`}
            current={({ source, target }) => chosen?.kind === "line" && chosen.from === source && chosen.to === target}
            empty="No lines."
            testId="lines"
          />
        </div>
      )}
    </details>
  );
}

function nodeColumns(onChoose: (chosen: Selection) => void): Column<Node>[] {
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

function lineColumns(network: Network, onChoose: (chosen: Selection) => void): Column<Link>[] {
  return [
    {
      key: "line",
      title: "creditor → debtor",
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
