//! DEBUG PROTOCOL: one sample of each type of reply, for the authors of client libraries.

use crate::engine::{Args, Ctx, Error};
use crate::resp::Protocol;

#[expect(clippy::approx_constant, reason = "the sample of a double is this number, not pi")]
const SAMPLE_DOUBLE: f64 = 3.141;

pub(super) fn sample(cx: &mut Ctx<'_>, mut args: Args<'_>) -> Result<(), Error> {
    let kind = args.word()?.to_ascii_lowercase();
    let reply = cx.reply();
    let is_resp3 = reply.protocol() == Protocol::Resp3;
    match kind.as_slice() {
        b"string" => reply.bulk(b"Hello World"),
        b"integer" => reply.integer(12345),
        b"double" => reply.double(SAMPLE_DOUBLE),
        b"bignum" => reply.big_number("1234567999999999999999999999999999999"),
        b"null" => reply.null(),
        b"array" => {
            reply.array(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"set" => {
            reply.set(3);
            (0..3).for_each(|number| reply.integer(number));
        }
        b"map" => {
            reply.map(3);
            for number in 0..3 {
                reply.integer(number);
                reply.boolean(number == 1);
            }
        }
        b"attrib" => {
            if is_resp3 {
                reply.attribute(1);
                reply.bulk(b"key-popularity");
                reply.array(2);
                reply.bulk(b"key:123");
                reply.integer(90);
            }
            reply.bulk(b"Some real reply following the attribute");
        }
        b"push" if !is_resp3 => return Err(Error::NotInResp2),
        b"push" => {
            reply.bulk(b"Some real reply following the push reply");
            reply.push(2);
            reply.bulk(b"server-cpu-usage");
            reply.integer(42);
        }
        b"verbatim" => reply.verbatim("txt", b"This is a verbatim\nstring"),
        b"true" => reply.boolean(true),
        b"false" => reply.boolean(false),
        _ => return Err(Error::ProtocolType),
    }
    Ok(())
}
