//! What is typed after `bench mirrors`.

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Runs, each with a seed of its own.
    pub runs: u64,
    /// Seed of the first run; the next ones follow.
    pub first_seed: u64,
    /// Runs at the same time.
    pub jobs: u64,
    /// To see whether it works: no results.
    pub is_quick: bool,
}

/// Runs, unless `--runs` says otherwise.
const RUNS: u64 = 100;

/// The same with `--quick`.
const QUICK_RUNS: u64 = 3;

/// Runs at the same time, unless `--jobs` says otherwise. All mirrors of so many send 400 Mbit/s
/// together, which is little for two processors.
const JOBS: u64 = 4;

impl Options {
    /// Reads `[--quick] [--runs N] [--first-seed N] [--jobs N]`.
    ///
    /// # Errors
    /// When it is something else; with what is known.
    pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            runs: RUNS,
            first_seed: 1,
            jobs: JOBS,
            is_quick: false,
        };
        let mut runs = None;
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut number = || {
                let text = args.next().unwrap_or_default();
                let number = text.parse().ok().filter(|&number| number > 0);
                number.ok_or_else(|| format!("{arg} {text}: a number from 1 on is needed"))
            };
            match arg.as_str() {
                "--quick" => options.is_quick = true,
                "--runs" => runs = Some(number()?),
                "--first-seed" => options.first_seed = number()?,
                "--jobs" => options.jobs = number()?,
                _ => {
                    let known = "--quick, --runs N, --first-seed N, --jobs N";
                    return Err(format!("unknown option {arg}: {known}"));
                }
            }
        }
        let usual = if options.is_quick { QUICK_RUNS } else { RUNS };
        options.runs = runs.unwrap_or(usual);
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(typed: &str) -> Result<Options, String> {
        Options::parse(typed.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn what_is_typed_is_what_is_measured() {
        let full = parse("").expect("valid");
        assert_eq!((full.runs, full.is_quick), (RUNS, false));
        assert_eq!(parse("--quick").expect("valid").runs, QUICK_RUNS);
        let one = parse("--runs 1 --first-seed 17 --quick").expect("valid");
        assert_eq!((one.runs, one.first_seed, one.is_quick), (1, 17, true));
        for wrong in ["--runs", "--runs 0", "--jobs many", "quick"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
