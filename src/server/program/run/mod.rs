//! `dunlin run`: runs a command with a server of its own.
//!
//! The server is in this process, on a free port, and ready before the command starts, which finds it by its
//! environment ([`variables`]). Streams, signals and the exit status are the command's ([`command`]). The server ends
//! with it, and nothing is left of either, save what the command itself has left running.
//!
//! With `--export` there is no command: the server is in a process of its own, and ends with the shell that has asked
//! for it ([`export`]).

mod command;
mod export;
mod options;
mod private_folder;
mod server;
mod variables;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::process::ExitCode;

use options::{Call, Options};
use server::CommandServer;

use crate::engine::state::kit::Level;
use crate::server::os_host::reason;

/// The exit code when the server cannot be started, as that of `docker run` and `timeout` for a fault of their own.
const NO_SERVER: u8 = 125;
/// The exit code if the command has passed, but strict mode has found something or a file could not be written.
const FAILED: u8 = 1;

/// Runs `dunlin run` with the words behind its name; returns the exit code.
pub(super) fn run(words: Vec<OsString>) -> ExitCode {
    match options::parse(words) {
        Ok(Call::Help) => super::print(options::HELP),
        Ok(Call::Run(options)) => run_or_export(&options).unwrap_or_else(|why| {
            say(&why);
            ExitCode::from(NO_SERVER)
        }),
        Err(why) => {
            say(&why);
            ExitCode::from(NO_SERVER)
        }
    }
}

/// Writes a line to the standard error.
fn say(line: &str) {
    // The command may have closed it; the exit code remains.
    let _ = writeln!(io::stderr(), "dunlin run: {line}");
}

fn run_or_export(options: &Options) -> Result<ExitCode, String> {
    if options.exports { export::run(options) } else { run_with_server(options) }
}

/// Runs the command of the options.
///
/// # Errors
/// When the server cannot be started.
fn run_with_server(options: &Options) -> Result<ExitCode, String> {
    let server = CommandServer::start(options)?;
    let variables = variables::of(server.addresses(), &options.names, options.only_names);
    if options.prints_env {
        let set = variables.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let lines: String = set.map(|(name, value)| format!("{name}={value}\n")).collect();
        server.end();
        return Ok(super::print(&lines));
    }
    if let Some(link) = server.addresses().page.as_ref().filter(|_| options.shows_page) {
        say(&format!("the page is at {link}"));
    }
    let code = command::run(&options.command, &variables, server.descriptors());
    server.wait_for_clients_to_leave(options.linger);
    let code = if checked(options, &server) || code != 0 { code } else { FAILED };
    server.end();
    Ok(ExitCode::from(code))
}

/// Prints the findings of strict mode, and writes the files of `--dump` and `--journal`. Returns false if a finding is
/// an error or a file could not be written: the command then counts as failed.
fn checked(options: &Options, server: &CommandServer) -> bool {
    let findings = server.findings();
    if !findings.is_empty() {
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        say(&format!("strict mode found {}:\n  {}", lines.len(), lines.join("\n  ")));
    }
    let is_dumped = is_written(&options.dump, || server.dump());
    let is_recorded = is_written(&options.journal, || server.journal());
    is_dumped && is_recorded && !findings.iter().any(|finding| finding.level == Level::Error)
}

/// Writes a text to a file, if it has a name; false, with the reason on the standard error, if it cannot be written.
fn is_written(path: &str, text: impl FnOnce() -> String) -> bool {
    if path.is_empty() {
        return true;
    }
    fs::write(path, text()).inspect_err(|error| say(&format!("cannot write {path}: {}", reason(error)))).is_ok()
}
