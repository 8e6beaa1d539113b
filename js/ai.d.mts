import type { LanguageModelMiddleware } from "ai";
import type { Options, Stack } from "./index.mjs";
export function toolmend(options?: Options | Stack): LanguageModelMiddleware;
