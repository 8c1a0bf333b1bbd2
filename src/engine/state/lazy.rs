//! State that takes memory only when it is used: many worlds exist that have no files and no log.

use std::ops::{Deref, DerefMut};

/// A value that is allocated when it is first changed; until then it reads as the default.
#[derive(Debug, Default)]
pub struct Lazy<T>(Option<Box<T>>);

/// A type with one shared default, which is read in the place of values that are not used.
pub trait Unused: Default + 'static {
    /// The shared default.
    fn unused() -> &'static Self;
}

impl<T> Lazy<T> {
    /// The value, if it was ever changed.
    #[inline]
    pub fn used(&self) -> Option<&T> {
        self.0.as_deref()
    }
}

impl<T: Unused> Deref for Lazy<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self.used() {
            Some(value) => value,
            None => T::unused(),
        }
    }
}

impl<T: Unused> DerefMut for Lazy<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Figures(u64);

    impl Unused for Figures {
        fn unused() -> &'static Figures {
            static UNUSED: OnceLock<Figures> = OnceLock::new();
            UNUSED.get_or_init(Figures::default)
        }
    }

    #[test]
    fn a_value_is_allocated_when_it_is_changed_and_not_when_it_is_read() {
        let mut lazy = Lazy::<Figures>::default();
        assert_eq!(*lazy, Figures(0));
        assert!(lazy.used().is_none(), "reading has allocated it");
        *lazy = Figures(7);
        assert_eq!(lazy.used(), Some(&Figures(7)));
        assert_eq!(*Lazy::<Figures>::default(), Figures(0), "another one has changed, too");
    }
}
