//! Sorted sets that share the parts of their large form until they change ([`Fork`]).

use super::large::Large;
use super::{Form, Zset};
use crate::value::base::{Base, Fork};

/// A packed set is copied.
impl<const N: usize> Fork for Zset<N> {
    fn without_parts(&self) -> Self {
        match &self.form {
            Form::Packed(packed) => Zset { form: Form::Packed(packed.clone()) },
            Form::Large(large) => Zset { form: Form::Large(Box::new(large.without_parts())) },
        }
    }

    fn set_base(&mut self, base: Option<Base<Self>>) {
        if let Form::Large(large) = &mut self.form {
            large.set_base(base.map(|base| base.part(Zset::large)));
        }
    }

    fn is_fork(&self) -> bool {
        matches!(&self.form, Form::Large(large) if large.is_fork())
    }

    fn own_bytes(&self) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.memory(),
            Form::Large(large) => large.own_bytes(),
        }
    }

    fn reclaim(&mut self, base: &mut Self) {
        if let (Form::Large(large), Form::Large(shared)) = (&mut self.form, &mut base.form) {
            large.reclaim(shared);
        }
    }
}

impl<const N: usize> Zset<N> {
    /// The large form of a set that is the base of a large one.
    fn large(&self) -> &Large<N> {
        match &self.form {
            Form::Large(large) => large,
            Form::Packed(_) => unreachable!("a base does not change"),
        }
    }
}
