import type { LanguageModelMiddleware, wrapLanguageModel } from "ai";
import type { Options, Stack } from "./index.mjs";
type Model = Parameters<typeof wrapLanguageModel>[0]["model"];
/** models has the models that the option escalate may name. */
export function toolmend(options?: Options | Stack, models?: Record<string, Model>): LanguageModelMiddleware;
