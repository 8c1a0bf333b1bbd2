//! The settings the server runs by, each with its type.
//!
//! How a parameter is spelled, parsed, limited and shown is `config/`'s business: one row there for each field here.

use crate::value::zset;

/// Who may call commands that a setting must enable first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Permission {
    /// Nobody.
    #[default]
    No,
    /// Clients on this machine.
    Local,
    /// Everybody.
    Yes,
}

/// All settings.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `databases`: how many there are.
    pub databases: usize,
    /// `requirepass`: the password, empty for none.
    pub password: String,
    /// `maxclients`: how many clients may be connected.
    pub max_clients: usize,
    /// `proto-max-bulk-len`: the largest string, in bytes.
    pub max_bulk_bytes: usize,
    /// `client-query-buffer-limit`: the largest unfinished request, in bytes.
    pub query_buffer_bytes: usize,
    /// `enable-debug-command`.
    pub debug_command: Permission,
    /// `zset-max-listpack-entries` and `zset-max-listpack-value`.
    pub packed_zset: zset::Limits,
    /// `port`: where TCP clients connect; 0 for no TCP.
    pub port: u16,
    /// `bind`: the addresses to listen on; a leading `-` lets one be missing.
    pub bind: Vec<String>,
    /// `tcp-backlog`: connections that may wait to be accepted.
    pub tcp_backlog: u32,
    /// `tcp-keepalive`: seconds between probes of a silent connection, 0 for none.
    pub tcp_keepalive_s: u32,
    /// `timeout`: seconds after which a silent client is closed, 0 for never.
    pub timeout_s: u32,
    /// `unixsocket`: a path to listen on, empty for none.
    pub unix_socket: String,
    /// `unixsocketperm`: its permissions, 0 to leave them.
    pub unix_socket_mode: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            databases: 16,
            password: String::new(),
            max_clients: 10_000,
            max_bulk_bytes: 512 << 20,
            query_buffer_bytes: 1 << 30,
            debug_command: Permission::No,
            packed_zset: zset::Limits::default(),
            port: 6379,
            bind: vec!["127.0.0.1".to_owned(), "-::1".to_owned()],
            tcp_backlog: 511,
            tcp_keepalive_s: 300,
            timeout_s: 0,
            unix_socket: String::new(),
            unix_socket_mode: 0,
        }
    }
}
