#!/usr/bin/env node
// Runs the binary of this platform's package, as if it had been started itself.
"use strict";

const { spawn } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");

const name = `@toolmend/${process.platform}-${process.arch}`;
const windows = process.platform === "win32";
let binary;
try {
  binary = require.resolve(`${name}/bin/toolmend${windows ? ".exe" : ""}`);
} catch {
  console.error(`toolmend: the package ${name} is not installed. It is an optional dependency of toolmend: ` +
    "install again without --omit=optional. For other platforms see https://github.com/toolmend/toolmend/blob/main/docs/install.md");
  process.exit(1);
}
const args = process.argv.slice(2);

// From Node 22.15 on the binary takes the place of this process. Not below npx: see the end.
const npx = process.env.npm_command === "exec";
if (process.execve && !windows && !npx) {
  process.execve(binary, [binary, ...args], process.env);
}

const child = spawn(binary, args, { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`toolmend: ${error.message}`);
  process.exit(126);
});

// A terminal sends these signals to its whole foreground process group, so the binary
// has them already. Others are sent on. /proc tells the two groups apart; without it, a
// terminal counts as their sender.
const keyboard = ["SIGINT", "SIGQUIT"];
function fromTerminal() {
  try {
    const stat = fs.readFileSync("/proc/self/stat", "latin1");
    const [, , group, , , foreground] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return group === foreground;
  } catch {
    return Boolean(process.stdin.isTTY);
  }
}
let stopping = false;
for (const signal of ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP", "SIGUSR2"]) {
  if (windows && signal !== "SIGINT") continue; // Windows ends the process for the others
  process.on(signal, () => {
    stopping ||= signal === "SIGINT" || signal === "SIGTERM";
    if (!windows && !(keyboard.includes(signal) && fromTerminal())) child.kill(signal);
  });
}

// npx has a shell as its child, and this process is a child of the shell. A signal to npx
// ends the shell only, so the end of the shell is the signal here.
const parent = process.ppid;
const watch = () => {
  if (process.ppid !== parent && !stopping) {
    stopping = true;
    child.kill("SIGTERM");
  }
};
if (npx && !windows) setInterval(watch, 200).unref();

child.on("exit", (code, signal) => process.exit(signal ? 128 + os.constants.signals[signal] : code));
