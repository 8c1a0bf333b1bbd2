//! Transcripts: text files with commands and the replies of a real Redis, played against several servers.
//!
//! The files under this folder are the specification of what a client sees. `README.md` here describes how to write
//! one, how to rewrite the replies from a real server, and the environment variables.

mod clusters;
mod journals;
mod notation;
mod runner;
#[path = "../support/mod.rs"]
mod support;

use dunlin::commands::FAMILIES;
use dunlin::engine::{Command, Flags, Table};
use runner::Transcript;
use runner::in_process::InProcess;
use runner::oracle::Oracle;
use runner::over_tcp::OverTcp;
use runner::target::Target;
use std::io;
use std::path::{Path, PathBuf};
use support::process::{Program, fault_of, updates};
use support::reply::Protocol;
use support::{reply, words};

/// Commands that no transcript calls: ours alone, and those that make a replica of the client.
const NOT_PLAYED: [&str; 4] = ["dunlin", "psync", "replconf", "sync"];

const PASSES: [Protocol; 2] = [Protocol::Resp2, Protocol::Resp3];

#[test]
fn every_transcript_can_be_read() {
    runner::for_each_file(|path| Transcript::read(path).err().into_iter().collect());
}

#[test]
fn every_command_is_found_by_its_name() {
    let table = Table::of(FAMILIES);
    let names = table.entries().iter().map(|entry| entry.name.as_str()).filter(|name| !name.contains('|'));
    let lost: Vec<&str> = names.filter(|name| !NOT_PLAYED.contains(name) && runner::named(name).is_empty()).collect();
    assert!(lost.is_empty(), "no transcript calls {lost:?}");
}

/// The folder whose transcripts read the log of changes.
const LOGGED: &str = "propagation/";

#[test]
fn every_command_that_may_write_has_a_case_of_what_it_writes_into_the_log() {
    let table = Table::of(FAMILIES);
    let sections: Vec<Transcript> =
        runner::named(LOGGED).iter().map(|path| Transcript::read(path).expect("it can be read")).collect();
    let names: Vec<String> = sections.iter().flat_map(|transcript| transcript.logged_commands(&table)).collect();
    let writes = |command: &Command| command.flags.has(Flags::WRITE) || command.flags.has(Flags::MAY_REPLICATE);
    let wanted = table.entries().iter().filter(|entry| writes(entry.command)).map(|entry| entry.name.as_str());
    let lost: Vec<&str> = wanted.filter(|name| !names.iter().any(|known| known == name)).collect();
    assert!(lost.is_empty(), "no transcript in {LOGGED} shows what {lost:?} write into the log of changes");
}

#[test]
fn an_oracle_of_another_version_or_name_is_refused() {
    assert_eq!(fault_of("# Server\r\nredis_version:8.0.6\r\nredis_mode:standalone\r\n"), None);
    let old = fault_of("# Server\r\nredis_version:7.0.15\r\n").expect("it is too old");
    assert_eq!(old, "it is 7.0.15, and answers are held to those of 8.0.6");
    assert!(fault_of("redis_version:8.0.60\r\n").is_some() && fault_of("").is_some());
    let others = ["redis_version:8.0.6\r\nserver_name:valkey", "redis_version:8.0.6\r\ndunlin_version:0.1.0"];
    assert_eq!(
        others.map(fault_of).map(|fault| fault.expect("the version is refused")),
        ["it is valkey, and no Redis", "it is dunlin, and no Redis"]
    );
}

#[test]
fn an_unknown_name_selects_no_transcript() {
    assert_eq!(runner::named("nosuchcommand"), Vec::<PathBuf>::new());
}

#[test]
fn a_transcript_is_found_by_its_file_by_its_commands_and_by_its_folder() {
    let [file, commands, folder] = ["incr", "incrby", "string/"].map(runner::named);
    assert!(matches!(file.as_slice(), [file] if file.ends_with("string/incr.txt")), "{file:?}");
    assert!(commands.contains(&file[0]), "INCRBY is called there: {commands:?}");
    assert!(folder.len() > 10 && folder.contains(&file[0]), "{folder:?}");
    assert!(runner::named("").len() > 200, "without a word all are played");
}

#[test]
fn our_engine_answers_as_every_transcript_says() {
    runner::for_each_file(|path| play_all(path, "our engine", || Ok(InProcess::new())));
}

#[test]
fn our_server_answers_as_every_transcript_says() {
    runner::for_each_file(|path| play_all(path, "our server", OverTcp::start));
}

#[test]
fn a_real_server_agrees_with_every_transcript() {
    let Some(program) = Program::from_environment("transcripts against a real server") else { return };
    runner::for_each_file(|path| ask_oracle(path, &program).unwrap_or_else(|problem| vec![problem]));
}

fn play_all<T: Target>(path: &Path, name: &str, start: impl Fn() -> io::Result<T>) -> Vec<String> {
    let play = || -> Result<Vec<String>, String> {
        let transcript = Transcript::read(path)?;
        let mut target = start().map_err(|error| format!("{name}: {error}"))?;
        transcript.report_left_out(&target);
        Ok(PASSES.into_iter().flat_map(|protocol| transcript.check(&mut target, name, protocol)).collect())
    };
    play().unwrap_or_else(|problem| vec![problem])
}

fn ask_oracle(path: &Path, program: &Program) -> Result<Vec<String>, String> {
    let mut transcript = Transcript::read(path)?;
    let mut oracle = Oracle::start(program).map_err(|error| format!("{program:?}: {error}"))?;
    if updates() {
        transcript = transcript.update(&mut oracle)?;
    }
    Ok(PASSES.into_iter().flat_map(|protocol| transcript.check(&mut oracle, "real server", protocol)).collect())
}
