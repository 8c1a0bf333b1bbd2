//! The description of commands: their rows, keys, errors and events, and the table of all rows.
//!
//! Nothing here knows the state of a server: this room uses no other room of the engine. Only a row names what runs it,
//! by the types of its functions ([`Command`]).

mod args;
mod categories;
mod changelog;
mod command;
mod descriptions;
mod error;
mod event;
mod key_spec;
mod keys;
mod moment;
mod propagated;
mod secrets;
mod table;

pub use args::{Args, says};
pub use categories::{CATEGORIES, KeyRange};
pub use changelog::Change;
pub use command::{Arity, Channels, Command, Family, Flags, Handler};
pub use descriptions::Description;
pub use error::{
    AclError, BitmapError, ClusterError, Error, FunctionError, GeoError, HyperLogLogError, KitError, RestoreError,
    ServerError, StreamError, TrackingError, VectorSetError, shown,
};
pub use event::{Class, Event, Notifications};
pub use key_spec::{Begin, Find, KeyFlags, KeySpec};
pub(in crate::engine) use keys::PlainKeys;
pub use moment::Now;
pub use propagated::Propagated;
pub use secrets::{REDACTED, Secrets};
pub use table::{CommandId, Entry, Table};

/// The version of Redis that this server answers as.
pub const REDIS_VERSION: &str = "8.0.6";
