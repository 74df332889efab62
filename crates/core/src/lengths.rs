//! Lengths that a sequence may still have.

use std::fmt;

/// Numbers of tokens that a sequence may still take, end tokens left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// The fewest.
    pub least: usize,
    /// The most.
    pub most: usize,
}

impl Lengths {
    /// Lengths between two numbers that may be left out; `None` where both are.
    pub fn of(least: Option<usize>, most: Option<usize>) -> Option<Self> {
        let (none, any) = (least.is_none() && most.is_none(), usize::MAX);
        (!none).then(|| Self { least: least.unwrap_or(0), most: most.unwrap_or(any) })
    }

    /// Lengths up to this.
    pub fn within(most: usize) -> Self {
        Self { least: 0, most }
    }

    /// Lengths after so many of the tokens; `None` where these are too many.
    #[must_use]
    pub fn after(self, tokens: usize) -> Option<Self> {
        let most = self.most.checked_sub(tokens)?;
        Some(Self { least: self.least.saturating_sub(tokens), most })
    }

    /// True where a sequence of so many tokens has one of these lengths.
    pub fn contains(self, tokens: usize) -> bool {
        (self.least..=self.most).contains(&tokens)
    }
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { least, most } = *self;
        match () {
            () if least == most => write!(f, "{least}"),
            () if most == usize::MAX => write!(f, "{least} or more"),
            () if least > most => write!(f, "{least} or more and {most} or fewer"),
            () => write!(f, "{least} to {most}"),
        }
    }
}
