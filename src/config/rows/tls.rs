//! Encrypted connections, which this server does not have.

use super::INT;
use crate::config::parameter::{Held, Parameter};

pub(super) const ROWS: &[Parameter] = &[
    Parameter::choice("tls-auth-clients", &["no", "yes", "optional"], Held::Always("yes")),
    Parameter::text("tls-ca-cert-dir", Held::Always("")),
    Parameter::text("tls-ca-cert-file", Held::Always("")),
    Parameter::text("tls-cert-file", Held::Always("")),
    Parameter::text("tls-ciphers", Held::Always("")),
    Parameter::text("tls-ciphersuites", Held::Always("")),
    Parameter::text("tls-client-cert-file", Held::Always("")),
    Parameter::text("tls-client-key-file", Held::Always("")),
    Parameter::text("tls-client-key-file-pass", Held::Always("")),
    Parameter::switch("tls-cluster", Held::Always("no")),
    Parameter::text("tls-dh-params-file", Held::Always("")),
    Parameter::text("tls-key-file", Held::Always("")),
    Parameter::text("tls-key-file-pass", Held::Always("")),
    Parameter::switch("tls-prefer-server-ciphers", Held::Always("no")),
    Parameter::text("tls-protocols", Held::Always("")),
    Parameter::switch("tls-replication", Held::Always("no")),
    Parameter::number("tls-session-cache-size", 0, INT, Held::Always("20480")),
    Parameter::number("tls-session-cache-timeout", 0, INT, Held::Always("300")),
    Parameter::switch("tls-session-caching", Held::Always("yes")),
];
