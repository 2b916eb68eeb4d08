//! What a request of `object_store` is part of, and what came back of it: that
//! library passes neither on, but it asks its connector from the same task.

use std::sync::{Arc, Mutex, PoisonError};

use fairbat::transport::RequestContext;

use super::answer::Answer;
use super::error::StoreError;

tokio::task_local! {
    static CALL: Call;
}

/// One call of a store.
#[derive(Debug, Clone, Default)]
pub(super) struct Call {
    passage: RequestContext,
    outcome: Arc<Mutex<Outcome>>,
}

/// Why the last request of a call failed.
#[derive(Debug, Default)]
enum Outcome {
    #[default]
    Well,
    Refused(Answer),
    Failed(StoreError),
}

impl Call {
    /// Runs one call of the library; `doing` says what for. What it fails with
    /// is what the store said, and not what the library made of it.
    pub(super) async fn run<T>(
        passage: RequestContext,
        doing: &str,
        call: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, StoreError> {
        let this = Self {
            passage,
            outcome: Arc::default(),
        };
        let outcome = Arc::clone(&this.outcome);
        let result = CALL.scope(this, call).await;
        result.map_err(|error| {
            let mut outcome = outcome.lock().unwrap_or_else(PoisonError::into_inner);
            match std::mem::take(&mut *outcome) {
                Outcome::Refused(answer) => answer.error(doing),
                Outcome::Failed(error) => StoreError {
                    message: format!("{doing}: {}", error.message),
                    ..error
                },
                Outcome::Well => StoreError::new(
                    super::StoreErrorKind::Server,
                    format!("{doing}: the answer of the store makes no sense: {error}"),
                ),
            }
        })
    }

    /// The one that this task is in.
    pub(super) fn current() -> Self {
        CALL.try_with(Clone::clone).unwrap_or_default()
    }

    pub(super) fn passage(&self) -> RequestContext {
        self.passage.clone()
    }

    pub(super) fn refused(&self, answer: Answer) {
        self.set(Outcome::Refused(answer));
    }

    pub(super) fn failed(&self, error: StoreError) {
        self.set(Outcome::Failed(error));
    }

    fn set(&self, outcome: Outcome) {
        *self.outcome.lock().unwrap_or_else(PoisonError::into_inner) = outcome;
    }
}
