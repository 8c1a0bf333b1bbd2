//! One of the compared servers: starts its program, sends commands, and reads its memory and processor time.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A running server, and a connection to it; it is ended when dropped.
pub struct Peer {
    process: Child,
    address: SocketAddr,
    connection: BufReader<TcpStream>,
}

/// The longest wait for a server to have nothing to do.
const SETTLING: Duration = Duration::from_millis(200);

/// The number of commands that are sent before their replies are read.
const PIPELINE: usize = 500;

impl Peer {
    /// Starts a program that takes redis-server's command line, on a free port of 127.0.0.1 and without files.
    pub fn start(program: &Path) -> Result<Peer, Box<dyn Error>> {
        Peer::start_with(program, &[])
    }

    /// Starts a program as [`Peer::start`] does, with more words on its command line.
    pub fn start_with(program: &Path, words: &[&str]) -> Result<Peer, Box<dyn Error>> {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
        let mut process = Command::new(program)
            .args(["--port", &port.to_string(), "--save", "", "--bind", "127.0.0.1"])
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", program.display()))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        loop {
            if let Ok(stream) = TcpStream::connect(address) {
                return Ok(Peer { process, address, connection: BufReader::new(stream) });
            }
            if let Some(status) = process.try_wait()? {
                return Err(format!("{} ended with {status}", program.display()).into());
            }
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
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

    /// Sends one command without waiting for its reply, which [`Peer::receive`] reads.
    pub fn send(&mut self, command: &[&str]) -> Result<(), Box<dyn Error>> {
        let words: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        Ok(self.connection.get_mut().write_all(request(&words).as_bytes())?)
    }

    /// Reads a one-line reply.
    pub fn receive(&mut self) -> Result<(), Box<dyn Error>> {
        self.line().map(drop)
    }

    /// Sends one command and reads its integer reply.
    pub fn integer(&mut self, command: &[String]) -> Result<usize, Box<dyn Error>> {
        self.connection.get_mut().write_all(request(command).as_bytes())?;
        Ok(self.line()?.trim_start_matches(':').parse()?)
    }

    /// Sends one command and reads its string reply.
    pub fn text(&mut self, command: &[String]) -> Result<String, Box<dyn Error>> {
        self.connection.get_mut().write_all(request(command).as_bytes())?;
        let length: usize = self.line()?.trim_start_matches('$').parse()?;
        let mut text = vec![0; length + 2];
        self.connection.read_exact(&mut text)?;
        text.truncate(length);
        Ok(String::from_utf8(text)?)
    }

    /// The resident memory of the process, in bytes.
    pub fn resident_bytes(&self) -> Result<u64, Box<dyn Error>> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).ok_or("no resident size")?;
        let kibibytes: u64 = line.split_whitespace().nth(1).ok_or("no resident size")?.parse()?;
        Ok(kibibytes * 1024)
    }

    /// The memory of the process and of its children; a page that several share counts once.
    pub fn proportional_bytes(&self) -> Result<u64, Box<dyn Error>> {
        let id = self.process.id();
        let mut sum = pss(id).ok_or("no proportional size")?;
        for entry in fs::read_dir("/proc")? {
            let Ok(child) = entry?.file_name().to_string_lossy().parse() else { continue };
            // A child may end at any moment.
            if parent(child) == Some(id) {
                sum += pss(child).unwrap_or(0);
            }
        }
        Ok(sum)
    }

    /// The processor time of all threads of the process.
    pub fn processor_time(&self) -> Result<Duration, Box<dyn Error>> {
        let mut sum_ns = 0;
        for thread in fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            let line = fs::read_to_string(thread?.path().join("schedstat"))?;
            sum_ns += line.split_whitespace().next().ok_or("no time of a thread")?.parse::<u64>()?;
        }
        Ok(Duration::from_nanos(sum_ns))
    }

    /// The processor time of all threads of the process, taken when all of them sleep, or after a while if they do
    /// not: the system adds the time of a running thread some milliseconds late.
    pub fn settled_processor_time(&self) -> Result<Duration, Box<dyn Error>> {
        let begin = Instant::now();
        while self.is_running()? && begin.elapsed() < SETTLING {}
        self.processor_time()
    }

    /// Whether a thread of the process runs, or could.
    fn is_running(&self) -> Result<bool, Box<dyn Error>> {
        for thread in fs::read_dir(format!("/proc/{}/task", self.process.id()))? {
            let line = fs::read_to_string(thread?.path().join("stat"))?;
            // The state follows the name, which is in parentheses and may contain some.
            if line.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R')) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The server's name and version, such as `Redis 8.0.6`.
    pub fn version(&mut self) -> Result<String, Box<dyn Error>> {
        let facts = self.text(&["INFO".to_owned(), "server".to_owned()])?;
        let field = |name: &str| facts.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let (name, version) = match (field("valkey_version"), field("redis_version")) {
            (Some(version), _) => ("Valkey", version),
            (None, Some(version)) => ("Redis", version),
            (None, None) => return Err("a server of no version".into()),
        };
        Ok(format!("{name} {}", version.trim()))
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
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The proportional size of a process in bytes, if it runs.
fn pss(id: u32) -> Option<u64> {
    let sizes = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).ok()?;
    let line = sizes.lines().find(|line| line.starts_with("Pss:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

/// The process that started a process, if it runs.
fn parent(id: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split_whitespace().nth(1)?.parse().ok()
}

/// A command in the form in which it is sent.
pub fn request(words: &[String]) -> String {
    let bulks: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    format!("*{}\r\n{bulks}", words.len())
}
