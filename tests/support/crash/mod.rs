//! A server with an append-only file that crashes: what it does ([`run`]), and the server ([`machine`]).

pub(crate) mod machine;
pub(crate) mod requests;
pub(crate) mod run;
