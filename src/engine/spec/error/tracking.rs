//! What CLIENT TRACKING and CLIENT CACHING refuse.

use thiserror::Error as Texts;

/// Why a client cannot track keys so.
#[derive(Clone, Debug, PartialEq, Eq, Texts)]
pub enum TrackingError {
    /// CLIENT TRACKING with two redirections.
    #[error("ERR A client can only redirect to a single other client")]
    RedirectsTwice,
    /// CLIENT TRACKING redirects to a client that is not there.
    #[error("ERR The client ID you want redirect to does not exist")]
    RedirectsNowhere,
    /// CLIENT TRACKING has prefixes for a mode without.
    #[error("ERR PREFIX option requires BCAST mode to be enabled")]
    PrefixWithoutBroadcast,
    /// CLIENT TRACKING changes from one mode to the other.
    #[error(
        "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and then re-enabling it \
         with a different mode."
    )]
    BroadcastSwitched,
    /// CLIENT TRACKING wants exceptions in a mode that knows none.
    #[error("ERR OPTIN and OPTOUT are not compatible with BCAST")]
    BroadcastWithChoice,
    /// CLIENT TRACKING wants exceptions both ways.
    #[error("ERR You can't specify both OPTIN mode and OPTOUT mode")]
    BothChoices,
    /// CLIENT TRACKING wants exceptions the other way than before.
    #[error(
        "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then re-enabling it \
         with a different mode."
    )]
    ChoiceSwitched,
    /// CLIENT TRACKING has a prefix that overlaps with one from before.
    #[error(
        "ERR Prefix '{given}' overlaps with an existing prefix '{existing}'. Prefixes for a single client must not \
         overlap."
    )]
    PrefixExists {
        /// The prefix.
        given: String,
        /// The one from before.
        existing: String,
    },
    /// CLIENT TRACKING has two prefixes that overlap.
    #[error(
        "ERR Prefix '{given}' overlaps with another provided prefix '{other}'. Prefixes for a single client must not \
         overlap."
    )]
    PrefixesOverlap {
        /// The one.
        given: String,
        /// The other, behind it.
        other: String,
    },
    /// CLIENT CACHING of a client that does not track.
    #[error(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or OPTOUT mode enabled"
    )]
    CachingWithoutTracking,
    /// CLIENT CACHING YES where everything is tracked anyway.
    #[error("ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.")]
    CachingYesWithoutOptin,
    /// CLIENT CACHING NO where it says nothing.
    #[error("ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.")]
    CachingNoWithoutOptout,
}
