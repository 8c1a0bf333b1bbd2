//! A client of the server for the commands of the page: a session without a socket, for one batch of commands.
//!
//! It passes every gate that a connection does, as the user that it has. It never blocks: the engine answers it as
//! within a transaction ([`crate::engine::Origin::is_page`]). It waits where every client has to, while clients are
//! paused or a script is suspended, and then leaves the thread to others.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::Poll;

use crate::acl::User;
use crate::engine::{Flow, Origin, SessionId, Transport};
use crate::resp::{Protocol, ReplyBuffer, Request};
use crate::server::host_call::{self, Attachment, HostCallState};
use crate::server::listen;
use crate::server::shared::Shared;
use crate::server::wake_flags::{WakeFlag, WakeFlags};

/// The name of the client.
const NAME: &[u8] = b"page";

/// A client that runs commands of the page.
#[derive(Debug)]
pub(super) struct Client {
    shared: Arc<Shared>,
    session: SessionId,
    wake_flags: Arc<WakeFlags>,
}

/// The server has closed the client.
#[derive(Debug)]
pub(super) struct Closed;

impl Client {
    /// Connects to a world; `None` if it has too many clients, or has ended. Strings of more than `most_of_string`
    /// bytes are cut in its replies.
    pub(super) fn connect(
        shared: &Arc<Shared>,
        peer: SocketAddr,
        user: Arc<User>,
        database: usize,
        most_of_string: Option<NonZeroU32>,
    ) -> Option<Client> {
        let origin = Origin {
            transport: Transport::Tcp,
            address: peer.to_string(),
            descriptor: -1,
            is_local: listen::is_local(peer),
            is_page: true,
            most_of_string,
            ..Origin::default()
        };
        let (session, wake_flags) = shared.connect(origin)?;
        if let Some(own) = shared.engine().sessions.get_mut(session) {
            (own.user, own.authenticated) = (user, true);
            (own.protocol, own.database) = (Protocol::Resp3, database);
            own.name = NAME.to_vec();
        }
        Some(Client { shared: Arc::clone(shared), session, wake_flags })
    }

    pub(super) fn session(&self) -> SessionId {
        self.session
    }

    /// Waits until the engine has something for this client.
    pub(super) async fn pushed(&self) -> Result<(), Closed> {
        self.wait_for(WakeFlag::Pushed).await
    }

    /// Runs a command; the output has its reply then, and pushes around it. Returns whether the client goes on.
    pub(super) async fn run(&mut self, request: Request<'_>, output: &mut ReplyBuffer) -> Result<bool, Closed> {
        loop {
            match self.shared.call(self.session, request, output).ok_or(Closed)? {
                Flow::Next => return Ok(true),
                Flow::HeldBack(_) => self.wait_for(WakeFlag::Resume).await?,
                Flow::CallHost => match host_call::answer(&self.shared, self.session, output.written_mut()) {
                    HostCallState::Answered => {}
                    HostCallState::Moved(attachment) => self.move_to(attachment),
                    HostCallState::Pending => self.wait_for(WakeFlag::Resume).await?,
                },
                Flow::Block => return self.wait_for_answer(output).await.map(|()| true),
                Flow::Close | Flow::Abort => return Ok(false),
            }
        }
    }

    /// Goes on in another world.
    fn move_to(&mut self, attachment: Attachment) {
        Attachment { shared: self.shared, session: self.session, wake_flags: self.wake_flags } = attachment;
    }

    /// Waits until a request that a script or a fault holds up is answered.
    async fn wait_for_answer(&self, output: &mut ReplyBuffer) -> Result<(), Closed> {
        loop {
            self.wait_for(WakeFlag::Pushed).await?;
            self.shared.fetch(self.session, output).ok_or(Closed)?;
            if !self.shared.engine().is_blocked(self.session) {
                return self.shared.fetch(self.session, output).ok_or(Closed);
            }
        }
    }

    async fn wait_for(&self, flag: WakeFlag) -> Result<(), Closed> {
        poll_fn(|cx| {
            self.wake_flags.attach(cx.waker());
            let flags = self.wake_flags.take();
            match () {
                () if flags.has(WakeFlag::Close) => Poll::Ready(Err(Closed)),
                () if flags.has(flag) => Poll::Ready(Ok(())),
                () => Poll::Pending,
            }
        })
        .await
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.disconnect(self.session);
    }
}
