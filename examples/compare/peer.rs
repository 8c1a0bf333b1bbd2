//! One of the servers that are compared.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// A server that runs, and a connection to it; ended when dropped.
pub struct Peer {
    process: Child,
    connection: BufReader<TcpStream>,
}

/// So many commands are sent before their replies are read.
const PIPELINE: usize = 500;
/// Attempts to connect to a server that is starting: each that is refused costs a fraction of a millisecond.
const ATTEMPTS: usize = 200_000;

impl Peer {
    /// Starts a program that takes redis-server's command line.
    pub fn start(program: &str) -> Result<Peer, Box<dyn Error>> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let process = Command::new(program)
            .args(["--port", &port.to_string(), "--save", "", "--bind", "127.0.0.1"])
            .stdout(Stdio::null())
            .spawn()?;
        let connected = (0..ATTEMPTS).find_map(|_| TcpStream::connect(("127.0.0.1", port)).ok());
        let connection = BufReader::new(connected.ok_or("the server does not listen")?);
        Ok(Peer { process, connection })
    }

    /// Sends all commands in pipelines, and reads their one-line replies.
    pub fn call_all(&mut self, commands: impl Iterator<Item = Vec<String>>) -> Result<(), Box<dyn Error>> {
        let mut commands = commands.peekable();
        while commands.peek().is_some() {
            let batch: Vec<Vec<String>> = commands.by_ref().take(PIPELINE).collect();
            let requests: String = batch.iter().map(|command| request(command)).collect();
            self.connection.get_mut().write_all(requests.as_bytes())?;
            for _ in &batch {
                self.line()?;
            }
        }
        Ok(())
    }

    /// Sends one command and reads the integer that it answers.
    pub fn integer(&mut self, command: &[String]) -> Result<usize, Box<dyn Error>> {
        self.connection.get_mut().write_all(request(command).as_bytes())?;
        Ok(self.line()?.trim_start_matches(':').parse()?)
    }

    /// Bytes of the process that are in memory.
    pub fn resident_bytes(&self) -> Result<u64, Box<dyn Error>> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no resident size")?;
        let kibibytes: u64 = line.split_whitespace().nth(1).ok_or("no resident size")?.parse()?;
        Ok(kibibytes * 1024)
    }

    fn line(&mut self) -> Result<String, Box<dyn Error>> {
        let mut line = String::new();
        self.connection.read_line(&mut line)?;
        if line.starts_with('-') {
            return Err(line.into());
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may be gone already; then there is nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn request(words: &[String]) -> String {
    let bulks: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    format!("*{}\r\n{bulks}", words.len())
}
