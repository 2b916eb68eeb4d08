//! The file of the database. After an error of its disk, `redb` refuses everything until
//! the file is opened again. So it is opened again as soon as somebody needs it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};

use redb::{
    Builder, Database, ReadTransaction, ReadableDatabase, StorageError, TransactionError,
    WriteTransaction,
};

use super::tables::StateError;
use crate::owner::give_to_owner_of_directory;

/// Cache of the database, bytes.
const CACHE_SIZE: usize = 32 * 1024 * 1024;

/// Name of the file in the directory for the state.
pub(crate) const STATE_FILE: &str = "agent.redb";

/// Mode of that directory.
const DIRECTORY_MODE: u32 = 0o700;

/// Mode of the file: it holds URLs with passwords.
const MODE: u32 = 0o600;

/// The database of a file.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    path: PathBuf,
    /// `None` if it could not be opened again.
    database: RwLock<Option<Database>>,
    /// Whether a write has failed since it was opened. Then reads may begin and fail later.
    has_failed: AtomicBool,
}

impl DatabaseFile {
    /// Opens a file, and makes it if needed. Takes it from other users.
    ///
    /// # Errors
    /// See [`StateError`].
    pub(crate) fn create(path: &Path) -> Result<Self, StateError> {
        make_private(path).map_err(StorageError::from)?;
        Ok(Self {
            path: path.to_owned(),
            database: RwLock::new(Some(builder().create(path)?)),
            has_failed: AtomicBool::new(false),
        })
    }

    /// Takes note that a write has failed.
    pub(crate) fn note_failure(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }

    /// Begins to read.
    ///
    /// # Errors
    /// See [`StateError`].
    pub(crate) fn begin_read(&self) -> Result<ReadTransaction, StateError> {
        self.begin(ReadableDatabase::begin_read)
    }

    /// Begins to write. Waits for the end of another write.
    ///
    /// # Errors
    /// See [`StateError`].
    pub(crate) fn begin_write(&self) -> Result<WriteTransaction, StateError> {
        self.begin(Database::begin_write)
    }

    fn begin<T>(
        &self,
        begin: impl Fn(&Database) -> Result<T, TransactionError>,
    ) -> Result<T, StateError> {
        let usable = |database: &Option<Database>| {
            if self.has_failed.load(Ordering::Relaxed) {
                return None;
            }
            let begun = begin(database.as_ref()?);
            let has_failed = matches!(
                begun,
                Err(TransactionError::Storage(StorageError::PreviousIo))
            );
            (!has_failed).then_some(begun)
        };
        let database = self.database.read();
        if let Some(begun) = usable(&database.unwrap_or_else(PoisonError::into_inner)) {
            return Ok(begun?);
        }
        let database = self.database.write();
        let mut database = database.unwrap_or_else(PoisonError::into_inner);
        // Another thread may have opened it meanwhile.
        if let Some(begun) = usable(&database) {
            return Ok(begun?);
        }
        // An open file is locked.
        *database = None;
        let opened = database.insert(builder().open(&self.path)?);
        self.has_failed.store(false, Ordering::Relaxed);
        tracing::info!("the state is opened again after an error of its disk");
        Ok(begin(opened)?)
    }
}

fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_SIZE);
    builder
}

/// Makes the file if needed, and takes it from other users.
fn make_private(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).mode(MODE);
    match options.clone().create_new(true).open(path) {
        Ok(file) => return give_to_owner_of_directory(path, &file),
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        Err(_) => {}
    }
    let file = options.open(path)?;
    if file.metadata()?.len() == 0 {
        tracing::warn!(
            "{} is empty: the agent begins with a new state, and has forgotten added downloads \
             and what is paused",
            path.display()
        );
    }
    tighten(path, &file, MODE)
}

/// Takes the rights that are not in `mode` from a file or a directory with secrets.
///
/// # Errors
/// Of the system. That it belongs to another user is no error.
fn tighten(path: &Path, file: &File, mode: u32) -> io::Result<()> {
    let mut permissions = file.metadata()?.permissions();
    let found = permissions.mode() & 0o7777;
    if found & 0o777 & !mode == 0 {
        return Ok(());
    }
    permissions.set_mode(mode);
    let path = path.display();
    match file.set_permissions(permissions) {
        Ok(()) => {
            tracing::warn!(
                "{path}: other users had access to it ({found:04o}); they have none now"
            );
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => tracing::warn!(
            "{path}: other users have access to it ({found:04o}), and it belongs to one of them; \
             give it to the agent's user"
        ),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Makes the directory of the state if needed, and takes it from other users: it has
/// passwords. One that is shared with something else is left as it is.
///
/// # Errors
/// Of the system.
pub(crate) fn make_private_directory(directory: &Path) -> io::Result<()> {
    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(DIRECTORY_MODE).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let opened = File::open(directory)?;
    if opened.metadata()?.permissions().mode() & 0o777 & !DIRECTORY_MODE == 0 {
        return Ok(());
    }
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_name() != STATE_FILE && !entry.file_type()?.is_socket() {
            tracing::warn!(
                "{}: other users have access to this directory with the state; it has other \
                 files too, so it is left as it is. Give the agent a directory of its own",
                directory.display()
            );
            return Ok(());
        }
    }
    tighten(directory, &opened, DIRECTORY_MODE)
}
