/** A message of OpenAI's Chat Completions. Further members stay. */
export interface ChatMessage {
  role: string;
  content?: unknown;
  tool_calls?: { id?: string; type?: string; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
  [member: string]: unknown;
}
/** The assistant message of a step. report and usage are not enumerable, so JSON leaves them out. */
export interface StepMessage extends ChatMessage {
  readonly report: Report;
  readonly usage: Usage;
}
/** model, max_tokens, stop and tool_choice are understood, and an attempt may change them. signal ends the step. */
export interface Settings { model?: string; max_tokens?: number; stop?: string[]; tool_choice?: unknown; signal?: AbortSignal; [name: string]: unknown }
/** A tool in the form of OpenAI, Anthropic, MCP or the protocol. */
export type AnyTool = object;
export type ModelCall = (messages: any[], tools: any[], settings: Settings) => Promise<object> | object;

/** A call of the model, as the protocol has it. arguments is the text that it wrote. */
export interface ToolCall { id?: string; name: string; arguments: string }
export interface Message {
  role: "system" | "user" | "assistant" | "tool";
  parts?: { kind?: "reasoning" | "media" | "opaque"; text?: string }[];
  tool_calls?: ToolCall[];
  tool_call_id?: string;
  tool_name?: string;
  is_error?: boolean;
  /** m2: the third message of the step; a1: the answer to question 1. */
  native?: { dialect: string; raw: string };
}
export interface Tool { name: string; description?: string; parameters?: object; kind?: "custom" | "builtin" | "hosted"; destructive?: boolean }
export interface Usage { input?: number; output?: number; cached?: number; reasoning?: number }
export interface Response { message: Message; finish_reason?: string; usage?: Usage }
/** One model call of a step. */
export interface Ask {
  n: number;
  keep: number; // messages of the step that stay at the start
  messages: Message[]; // those after them
  tools?: Tool[]; // undefined: the tools of the step
  settings?: { model?: string; tool_choice?: { mode?: string; name?: string }; max_tokens?: number; stop?: string[] };
  signal: AbortSignal; // its answer is not needed any more
  emit(kind: "text" | "reasoning", text: string): void;
}
export interface Issue { code?: string; pointer?: string; message: string }
export interface Change { by: string; pointer: string; before?: string; after?: string }
export interface Event { kind: "text" | "reasoning" | "reset" | "tool_call"; text?: string; call?: ToolCall }
export interface CallVerdict { call: ToolCall; issues?: Issue[]; changes?: Change[]; unchecked?: boolean }
export interface Report {
  status?: "" | "valid" | "invalid" | "unchecked";
  attempts?: { message?: Message; verdicts?: CallVerdict[]; issues?: Issue[]; replies?: Message[]; usage?: Usage; error?: string }[];
  final: number;
  notes?: string[];
}
export interface Result { n?: number; status?: Report["status"]; response?: Response; report: Report }
export interface Verdict { ok: boolean; args: any; issues: Issue[]; changes: Change[]; unchecked: boolean; reply: string }

type Findings = undefined | null | string | Issue | (string | Issue)[];
/** Returns what is wrong with a call, or throws Invalid. */
export type Rule = (call: ToolCall & { args: any; siblings: ToolCall[]; signal: AbortSignal }) => Findings | Promise<Findings>;
/** The same for a value in the arguments. */
export type ValueRule = (value: any, call: Parameters<Rule>[0]) => Findings | Promise<Findings>;

type Exhausted = "raise" | "pass" | "drop";
type Strip = "optional" | "when-invalid" | "all" | "off";
/** The names and words are those of toolmend.toml. */
export interface Options {
  mode?: "enforce" | "repair";
  attempts?: number;
  retries?: number;
  on_exhausted?: Exhausted;
  repairs?: string[];
  rescue?: string[];
  heal?: string[];
  strip?: Strip;
  batch?: "reissue-all" | "keep-valid";
  unknown_tools?: "reject" | "pass";
  unusable_schemas?: "pass" | "reject";
  empty_answers?: string;
  raise_tokens?: number | "off" | "unbounded";
  escalate?: string;
  loop_after?: number;
  formats?: "off" | "safe" | "all";
  limits?: { bytes?: number; depth?: number; number?: number; exponent?: number; calls?: number; turns?: number };
  tool?: { name: string; attempts?: number; on_exhausted?: Exhausted; repairs?: string[]; strip?: Strip; aliases?: Record<string, string>; destructive?: boolean; polling?: boolean }[];
  text_call?: boolean;
  answer?: object;
  record?: string;
  rule_timeout?: number;
  /** Functions by the name of a tool, or "*"; or by a path in its arguments. */
  rules?: Record<string, Rule | Record<string, ValueRule>>;
  /** Gets the report of each step. */
  onReport?(report: Report): void;
  /** Gets a sentence for each repair and each invalid call, without values. */
  log?(line: string): void;
  binary?: string;
}
export class ToolmendError extends Error {}
export class Ended extends ToolmendError {}
export class StepError extends ToolmendError {
  code: string;
  verdicts: CallVerdict[];
  replies: Message[];
  report: Report | Record<string, never>;
  response?: Response;
  /** The last message of the model, in the framework's own form. */
  lastMessage?: any;
}
export class Invalid extends Error {
  constructor(message: string, pointer?: string);
  pointer: string;
}
export class Stack {
  constructor(options?: Options);
  /** Wraps a call with the messages of OpenAI's Chat Completions. */
  wrap(call: ModelCall): (messages: object[], tools?: AnyTool[], settings?: Settings) => Promise<StepMessage>;
  validate(tool: AnyTool, args: unknown, options?: { signal?: AbortSignal }): Promise<Verdict>;
  /** For adapters. */
  step(o: {
    request?: object; messages: Message[]; tools: Tool[]; ask(ask: Ask): Promise<Response>;
    /** The host's own form of a message, for StepError.lastMessage. */
    native?(message: Message): any;
    onEvent?(event: Event): void; signal?: AbortSignal;
  }): Promise<Result>;
}
export function validate(tool: AnyTool, args: unknown): Promise<Verdict>;
