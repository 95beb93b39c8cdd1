/** A readable JSON value: members as a definition list, lists of similar objects as a table, other lists nested. */

import { useRef } from "preact/hooks";

import type { Json, JsonList, JsonObject } from "../api/json";
import { inOneLine, isList, isObject } from "../api/json";
import { counted, integer } from "../wording";
import type { Column } from "./DataTable";
import { DataTable } from "./DataTable";
import type { SortValue } from "./sorting";

const OPEN_LEVELS = 3;
const MAX_ITEMS = 200;

export function JsonTree({ value, name }: { readonly value: Json; readonly name: string }) {
  return (
    <div class="tree" data-testid="state-tree">
      <Value value={value} name={name} level={1} />
    </div>
  );
}

interface ValueProps {
  readonly value: Json;
  readonly name: string;
  readonly level: number;
}

function Value({ value, name, level }: ValueProps) {
  if (isList(value)) return <List list={value} name={name} level={level} />;
  if (isObject(value)) return <Members object={value} name={name} level={level} />;
  return <Leaf value={value} />;
}

function Members({
  object,
  name,
  level,
}: {
  readonly object: JsonObject;
  readonly name: string;
  readonly level: number;
}) {
  const members = Object.entries(object);
  if (members.length === 0) return <span class="tree-empty">none</span>;
  const list = (
    <dl class="members">
      {members.map(([member, value]) => (
        <div class={isLeaf(value) ? "member" : "member member-nested"} key={member}>
          <dt>{member}</dt>
          <dd>
            <Value value={value} name={`${name}.${member}`} level={level + 1} />
          </dd>
        </div>
      ))}
    </dl>
  );
  return level === 1 ? (
    list
  ) : (
    <Fold label={counted(members.length, "member")} open={level < OPEN_LEVELS} content={list} />
  );
}

function List({ list, name, level }: { readonly list: JsonList; readonly name: string; readonly level: number }) {
  if (list.length === 0) return <span class="tree-empty">none</span>;
  if (list.every(isLeaf) && list.length <= 12) return <Leaf value={list} />;
  const shown = list.slice(0, MAX_ITEMS);
  const rest = list.length - shown.length;
  const content = (
    <>
      {list.every(isFlatObject) ? (
        <DataTable
          caption={name}
          columns={columnsOf(shown as readonly JsonObject[])}
          rows={shown.map((object, index) => ({ object: object as JsonObject, index }))}
          rowKey={({ index }) => index}
          empty="none"
        />
      ) : (
        <ol class="items" start={0}>
          {shown.map((item, index) => (
            <li key={index}>
              <Value value={item} name={`${name}[${index}]`} level={level + 1} />
            </li>
          ))}
        </ol>
      )}
      {rest > 0 && <p class="quiet">and {integer(rest)} more</p>}
    </>
  );
  return level === 1 ? (
    content
  ) : (
    <Fold label={counted(list.length, "item")} open={level < OPEN_LEVELS} content={content} />
  );
}

interface FoldProps {
  readonly label: string;
  readonly open: boolean;
  readonly content: preact.ComponentChild;
}

function Fold({ label, open, content }: FoldProps) {
  return (
    <details class="fold" open={open}>
      <summary>{label}</summary>
      {content}
    </details>
  );
}

/** A value that is highlighted for a moment when it changes. */
function Leaf({ value }: { readonly value: Json }) {
  const text = inOneLine(value);
  const before = useRef(text);
  const changes = useRef(0);
  if (before.current !== text) {
    before.current = text;
    changes.current += 1;
  }
  const kind = value === null ? "null" : isList(value) ? "list" : typeof value;
  return (
    <span key={changes.current} class={changes.current > 0 ? "leaf leaf-changed" : "leaf"} data-kind={kind}>
      {text}
    </span>
  );
}

interface IndexedObject {
  readonly object: JsonObject;
  readonly index: number;
}

function columnsOf(objects: readonly JsonObject[]): Column<IndexedObject>[] {
  const names = [...new Set(objects.flatMap((object) => Object.keys(object)))];
  return names.map((name) => ({
    key: name,
    title: name,
    numeric: objects.every((object) => object[name] === undefined || isNumeric(object[name])),
    cell: ({ object }) => <Leaf value={object[name] ?? null} />,
    by: ({ object }) => sortValue(object[name] ?? null),
  }));
}

function sortValue(value: Json): SortValue {
  return value === null || typeof value !== "object" ? value : inOneLine(value);
}

function isNumeric(value: Json): boolean {
  return typeof value === "number" || typeof value === "bigint";
}

function isLeaf(value: Json): boolean {
  return value === null || typeof value !== "object";
}

function isFlatObject(value: Json): boolean {
  return isObject(value) && Object.values(value).every(isLeaf);
}
