//! Transcripts: text files with commands and the answers that a real Redis gave, played against several servers.
//!
//! The files under this folder are the specification of what a client sees. `README.md` here tells how to write one,
//! how to rewrite the answers from a real server, and what the environment variables mean.

mod runner;

use runner::Transcript;
use runner::in_process::InProcess;
use runner::oracle::Oracle;
use runner::over_tcp::OverTcp;
use runner::reply::Protocol;
use runner::target::Target;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const PASSES: [Protocol; 2] = [Protocol::Resp2, Protocol::Resp3];

#[test]
fn every_transcript_can_be_read() {
    runner::for_each_file(|path| Transcript::read(path).err().into_iter().collect());
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
    let Some(program) = std::env::var_os("DUNLIN_ORACLE").map(PathBuf::from) else {
        writeln!(io::stderr(), "skipped: DUNLIN_ORACLE names no real server to ask").expect("somebody reads it");
        return;
    };
    let update = std::env::var_os("UPDATE").is_some_and(|value| value == "1");
    runner::for_each_file(|path| ask_oracle(path, &program, update).unwrap_or_else(|problem| vec![problem]));
}

fn play_all<T: Target>(path: &Path, name: &str, start: impl Fn() -> io::Result<T>) -> Vec<String> {
    let play = || -> Result<Vec<String>, String> {
        let transcript = Transcript::read(path)?;
        let mut target = start().map_err(|error| format!("{name}: {error}"))?;
        transcript.tell_what_is_left_out(&target);
        Ok(PASSES.into_iter().flat_map(|protocol| transcript.check(&mut target, name, protocol)).collect())
    };
    play().unwrap_or_else(|problem| vec![problem])
}

fn ask_oracle(path: &Path, program: &Path, update: bool) -> Result<Vec<String>, String> {
    let mut transcript = Transcript::read(path)?;
    let mut oracle = Oracle::start(program).map_err(|error| format!("{}: {error}", program.display()))?;
    if update {
        transcript = transcript.update(&mut oracle)?;
    }
    Ok(PASSES.into_iter().flat_map(|protocol| transcript.check(&mut oracle, "real server", protocol)).collect())
}
