//! Our server as a target, over TCP, as every client reaches it.
//!
//! Every section has its own server, on a free port. Its clock is frozen until a transcript moves it, and its files are
//! on a simulated disk, so that BGREWRITEAOF leaves nothing in the checkout.

use super::format::Section;
use super::in_process;
use super::matching::Clock;
use super::target::{Link, Target, TcpLink, wait_until_read};
use dunlin::commands::FAMILIES;
use dunlin::engine::Table;
use dunlin::{Disk, Server};
use std::io;
use std::time::Duration;

/// Servers of our own, one after the other.
pub(crate) struct OverTcp {
    table: Table,
    server: Server,
}

impl OverTcp {
    pub(crate) fn start() -> io::Result<Self> {
        Ok(Self { table: Table::of(FAMILIES), server: start()? })
    }
}

fn start() -> io::Result<Server> {
    Server::builder().frozen().allow_debug().disk(&Disk::new()).start().map_err(io::Error::other)
}

impl Target for OverTcp {
    fn clock(&self) -> Clock {
        Clock::Injected
    }

    fn knows(&self, words: &[Vec<u8>]) -> bool {
        in_process::knows(&self.table, words)
    }

    fn fresh(&mut self, _section: &Section) -> io::Result<()> {
        self.server = start()?;
        Ok(())
    }

    fn connect(&mut self) -> io::Result<Box<dyn Link>> {
        Ok(Box::new(TcpLink::open(self.server.addr())?))
    }

    fn advance(&mut self, by: Duration) -> io::Result<bool> {
        self.server.advance(by);
        Ok(true)
    }

    fn wait_until_read(&mut self) -> io::Result<()> {
        wait_until_read(self.server.addr())
    }
}
