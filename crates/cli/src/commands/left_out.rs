//! Commands that a build leaves out: they take any arguments and name the feature that has them.

/// `palmette bench` in a build without the feature `bench`.
#[cfg(not(feature = "bench"))]
pub(crate) mod bench {
    use clap::Args;

    use crate::features::left_out;

    /// Measure what catalogs, grammars and sets of strings cost on this machine (not in this build:
    /// `--features bench`)
    #[derive(Debug, Args)]
    pub(crate) struct BenchArgs {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        _rest: Vec<String>,
    }

    pub(crate) fn run(_args: &BenchArgs) -> anyhow::Result<()> {
        Err(left_out("measures nothing", "bench"))
    }
}

/// `palmette demo` in a build without the feature `demo`.
#[cfg(not(feature = "demo"))]
pub(crate) mod demo {
    use clap::Args;

    use crate::features::left_out;

    /// Recommend from a built-in shop (not in this build: `--features demo`)
    #[derive(Debug, Args)]
    pub(crate) struct DemoArgs {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        _rest: Vec<String>,
    }

    pub(crate) fn run(_args: &DemoArgs) -> anyhow::Result<()> {
        Err(left_out("has no built-in shop", "demo"))
    }
}

/// `palmette loadtest` in a build without the feature `server`.
#[cfg(not(feature = "server"))]
pub(crate) mod loadtest {
    use clap::Args;

    use crate::features::left_out;

    /// Measure a server under load (not in this build: `--features server`)
    #[derive(Debug, Args)]
    pub(crate) struct LoadtestArgs {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        _rest: Vec<String>,
    }

    pub(crate) fn run(_args: &LoadtestArgs) -> anyhow::Result<()> {
        Err(left_out("puts no load on servers", "server"))
    }
}

/// `palmette serve` in a build without the feature `server`.
#[cfg(not(feature = "server"))]
pub(crate) mod serve {
    use clap::Args;

    use crate::features::left_out;

    /// Serve recommendations over HTTP (not in this build: `--features server`)
    #[derive(Debug, Args)]
    pub(crate) struct ServeArgs {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        _rest: Vec<String>,
    }

    pub(crate) fn run(_args: &ServeArgs) -> anyhow::Result<()> {
        Err(left_out("serves nothing", "server"))
    }
}

/// `palmette key` in a build without the feature `server`.
#[cfg(not(feature = "server"))]
pub(crate) mod key {
    use clap::Args;

    use crate::features::left_out;

    /// Make a key for a client of a server (not in this build: `--features server`)
    #[derive(Debug, Args)]
    pub(crate) struct KeyArgs {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        _rest: Vec<String>,
    }

    pub(crate) fn run(_args: &KeyArgs) -> anyhow::Result<()> {
        Err(left_out("makes no keys", "server"))
    }
}
