/** The form to start a run: scenario or upload, clearing policy, limits. */

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

export interface RunSettings {
  readonly scenario: string;
  readonly seed: string;
  readonly cap: string;
  readonly policy: string;
  readonly intensity: number;
}

const DEFAULTS: RunSettings = { scenario: "village-100", seed: "", cap: "500", policy: "static", intensity: 70 };
const OWN_RUN = "owner_active_exists";
const EXISTS = "SCENARIO_EXISTS";

export function StartRun({ open, onStarted }: StartRunProps) {
  const id = useId();
  const scenarios = useSignal<readonly Summary[]>([]);
  const settings = useSignal<RunSettings>(DEFAULTS);
  const { busy, error, work } = useWork();
  const set = (change: Partial<RunSettings>) => (settings.value = { ...settings.value, ...change });

  const load = async () => {
    scenarios.value = (await api.get("/api/v1/simulator/scenarios", {})).items;
  };
  const start = async () => {
    const { run_id } = await api.post("/api/v1/simulator/runs", {}, bodyOf(settings.value));
    if (run_id !== null) onStarted(run_id);
  };
  const upload = async (file: File) => {
    const document = parseDocument(await file.text(), file.name);
    try {
      const stored = await api.post("/api/v1/simulator/scenarios", {}, document);
      await load();
      set({ scenario: stored.scenario_id });
    } catch (thrown) {
      // The scenario exists: select it, since it is probably the one meant, and show the error.
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
            value={settings.value.scenario}
            onChange={(event) => set({ scenario: event.currentTarget.value })}
            data-testid="scenario"
          >
            {scenarios.value.map(({ scenario_id, name, participants_count, trustlines_count }) => (
              <option key={scenario_id} value={scenario_id}>
                {name ?? scenario_id} ({counted(participants_count, "participant")}, {counted(trustlines_count, "line")}
                )
              </option>
            ))}
          </select>
        </label>
        <label for={`${id}upload`}>
          or upload a scenario file
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
          Clearing
          <select
            id={`${id}policy`}
            value={settings.value.policy}
            onChange={(event) => set({ policy: event.currentTarget.value })}
            data-testid="policy"
          >
            <option value="static">every 25 ticks</option>
            <option value="adaptive">when capacity is short</option>
            <option value="off">never</option>
          </select>
        </label>
        <label for={`${id}cap`}>
          Largest payment
          <input
            id={`${id}cap`}
            inputMode="decimal"
            value={settings.value.cap}
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
            placeholder="from the scenario"
            value={settings.value.seed}
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
            value={settings.value.intensity}
            onInput={(event) => set({ intensity: Number(event.currentTarget.value) })}
            data-testid="first-intensity"
          />
        </label>
        {schedulerList.value?.demo === true && (
          <p class="quiet" data-testid="demo-stops">
            This stops the demo run. It stays in the list and restarts when no other run is active.
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

/** Parse a scenario file; throws an `ApiError` that names the file. */
export function parseDocument(text: string, name: string): Json {
  try {
    return parseJson(text);
  } catch (thrown) {
    const fault = thrown instanceof Error ? thrown.message : String(thrown);
    throw new ApiError("not_json", `${name} is not JSON: ${fault}`);
  }
}

/** The request body of a run; the optimum of each clearing is computed for the efficiency curve. */
export function bodyOf({ scenario, seed, cap, policy, intensity }: RunSettings): JsonObject {
  const clearing: JsonObject = policy === "off" ? { clearing_enabled: "off" } : { clearing_policy: policy };
  const options = { ...clearing, clearing_yardstick: "on", ...(cap.trim() === "" ? {} : { amount_cap: cap.trim() }) };
  const chosen = seed.trim() === "" ? {} : { seed: Number(seed) };
  return { scenario_id: scenario, mode: "real", intensity_percent: intensity, settings: options, ...chosen };
}
