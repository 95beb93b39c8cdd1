/** Begin a run: choose a scenario or bring one, say how much is paid and how debts are cleared. */

import { useSignal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";

import { ApiError } from "../../api/client";
import type { Json, JsonObject } from "../../api/json";
import { parseJson } from "../../api/json";
import { api, canCommand, schedulerList } from "../../api/server";
import type { Summary } from "../../api/types";
import { ErrorNote } from "../../components/ErrorNote";
import { counted } from "../../wording";
import { useWork } from "../shared/work";

interface StartRunProps {
  readonly open: boolean;
  readonly onStarted: (runId: string) => void;
}

export interface Wish {
  readonly scenario: string;
  readonly seed: string;
  readonly cap: string;
  readonly policy: string;
  readonly intensity: number;
}

const FIRST: Wish = { scenario: "village-100", seed: "", cap: "500", policy: "static", intensity: 70 };
const OWN_RUN = "owner_active_exists";
const EXISTS = "SCENARIO_EXISTS";

export function StartRun({ open, onStarted }: StartRunProps) {
  const id = useId();
  const scenarios = useSignal<readonly Summary[]>([]);
  const wish = useSignal<Wish>(FIRST);
  const { busy, error, work } = useWork();
  const set = (change: Partial<Wish>) => (wish.value = { ...wish.value, ...change });

  const load = async () => {
    scenarios.value = (await api.get("/api/v1/simulator/scenarios", {})).items;
  };
  const start = async () => {
    const { run_id } = await api.post("/api/v1/simulator/runs", {}, bodyOf(wish.value));
    if (run_id !== null) onStarted(run_id);
  };
  const upload = async (file: File) => {
    const document = documentIn(await file.text(), file.name);
    try {
      const kept = await api.post("/api/v1/simulator/scenarios", {}, document);
      await load();
      set({ scenario: kept.scenario_id });
    } catch (thrown) {
      // One of this id is there: that is told, and it is the one that was probably meant.
      const known = thrown instanceof ApiError && thrown.code === EXISTS ? thrown.details["scenario_id"] : undefined;
      if (typeof known === "string") set({ scenario: known });
      throw thrown;
    }
  };
  const conflict = error.value?.details["conflict_kind"] === OWN_RUN ? error.value.details["active_run_id"] : undefined;
  useEffect(() => void work(load), []);

  return (
    <details class="panel fold start-run" open={open} data-testid="start-run">
      <summary>Start a run</summary>
      <form
        class="credit-form"
        onSubmit={(event) => {
          event.preventDefault();
          void work(start);
        }}
      >
        <label for={`${id}scenario`}>
          Scenario
          <select
            id={`${id}scenario`}
            value={wish.value.scenario}
            onChange={(event) => set({ scenario: event.currentTarget.value })}
            data-testid="scenario"
          >
            {scenarios.value.map((one) => (
              <option key={one.scenario_id} value={one.scenario_id}>
                {one.name ?? one.scenario_id} ({counted(one.participants_count, "participant")},{" "}
                {counted(one.trustlines_count, "line")})
              </option>
            ))}
          </select>
        </label>
        <label for={`${id}upload`}>
          or bring a scenario file
          <input
            id={`${id}upload`}
            type="file"
            accept=".json,application/json"
            disabled={!canCommand.value}
            onChange={(event) => {
              const file = event.currentTarget.files?.[0];
              if (file !== undefined) void work(() => upload(file));
            }}
            data-testid="upload"
          />
        </label>
        <label for={`${id}policy`}>
          Debts are cleared
          <select
            id={`${id}policy`}
            value={wish.value.policy}
            onChange={(event) => set({ policy: event.currentTarget.value })}
            data-testid="policy"
          >
            <option value="static">every 25 ticks</option>
            <option value="adaptive">when payments find no capacity</option>
            <option value="off">never</option>
          </select>
        </label>
        <label for={`${id}cap`}>
          Largest payment
          <input
            id={`${id}cap`}
            inputMode="decimal"
            value={wish.value.cap}
            onInput={(event) => set({ cap: event.currentTarget.value })}
            data-testid="cap"
          />
        </label>
        <label for={`${id}seed`}>
          Seed
          <input
            id={`${id}seed`}
            inputMode="numeric"
            pattern="\d{0,15}"
            placeholder="the scenario's"
            value={wish.value.seed}
            onInput={(event) => set({ seed: event.currentTarget.value })}
            data-testid="seed"
          />
        </label>
        <label for={`${id}intensity`}>
          Intensity, %
          <input
            id={`${id}intensity`}
            type="number"
            min={0}
            max={100}
            value={wish.value.intensity}
            onInput={(event) => set({ intensity: Number(event.currentTarget.value) })}
            data-testid="first-intensity"
          />
        </label>
        {schedulerList.value?.demo === true && (
          <p class="quiet" data-testid="demo-makes-way">
            This stops the run of the demonstration. It stays in the list of runs, and begins again when no other run is
            active.
          </p>
        )}
        <button type="submit" class="button button-main" disabled={busy.value || !canCommand.value} data-testid="start">
          Start
        </button>
      </form>
      {error.value !== null && <ErrorNote error={error.value} />}
      {typeof conflict === "string" && (
        <button
          type="button"
          class="button"
          onClick={() =>
            void work(async () => {
              await api.post("/api/v1/simulator/runs/{run_id}/stop", { run_id: conflict });
              await start();
            })
          }
          data-testid="stop-and-start"
        >
          Stop that run and start this one
        </button>
      )}
    </details>
  );
}

/** The document that a file holds; throws an `ApiError` that names the file. */
export function documentIn(text: string, name: string): Json {
  try {
    return parseJson(text);
  } catch (thrown) {
    const fault = thrown instanceof Error ? thrown.message : String(thrown);
    throw new ApiError("not_json", `${name} is not JSON: ${fault}`);
  }
}

/** A wish as the server takes it; every clearing is measured against the best one, which the curves show. */
export function bodyOf({ scenario, seed, cap, policy, intensity }: Wish): JsonObject {
  const clearing: JsonObject = policy === "off" ? { clearing_enabled: "off" } : { clearing_policy: policy };
  const settings = { ...clearing, clearing_yardstick: "on", ...(cap.trim() === "" ? {} : { amount_cap: cap.trim() }) };
  const chosen = seed.trim() === "" ? {} : { seed: Number(seed) };
  return { scenario_id: scenario, mode: "real", intensity_percent: intensity, settings, ...chosen };
}
