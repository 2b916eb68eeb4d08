//! The programs, brought into the kernel and attached.

use std::fs::{self, Permissions};
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link, MapHandle, PrintLevel, set_print};

use super::{SetupError, failed, failed_to};
use crate::ebpf::EbpfPart;
use crate::ebpf::layout::{FAMILIES, PREFIX};
use crate::ebpf::pins::{LINK, PinDirectory, io_error};

mod skeletons {
    #![allow(
        clippy::all,
        clippy::pedantic,
        clippy::unwrap_used,
        missing_docs,
        unsafe_code,
        unreachable_pub,
        unused_qualifications,
        reason = "generated"
    )]
    pub(crate) mod observer {
        include!(concat!(env!("OUT_DIR"), "/observer.skel.rs"));
    }
    pub(crate) mod congestion {
        include!(concat!(env!("OUT_DIR"), "/congestion.skel.rs"));
    }
}

/// Where a kernel that can relocate the programs' types describes its own.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// The congestion controls that the kernel has, in every network namespace.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Names are tried up to this number: one more digit would not fit into a name.
const NUMBERS: u32 = 99;

/// Attached programs without pins; they go when this is dropped.
pub(crate) struct LoadedPrograms {
    /// By the names of their pins.
    links: Vec<(String, Link)>,
    /// In the order of [`PinDirectory::maps`].
    maps: [MapHandle; 2],
}

impl LoadedPrograms {
    /// Loads and attaches the programs of a part.
    pub(crate) fn new(part: EbpfPart) -> Result<Self, SetupError> {
        if !Path::new(BTF).exists() {
            return Err(SetupError::NoBtf);
        }
        let before = set_print(Some((PrintLevel::Info, keep)));
        let loaded = match part {
            EbpfPart::Observer => Self::observer(),
            EbpfPart::CongestionControls => Self::congestion_controls(),
        };
        set_print(before);
        let log = std::mem::take(&mut *LOG.lock().unwrap_or_else(PoisonError::into_inner));
        loaded.map_err(|error| {
            let source = io_error(&error);
            if source.kind() == io::ErrorKind::PermissionDenied {
                return failed(format!("load the {part}"), source);
            }
            SetupError::Refused { part, source, log }
        })
    }

    fn observer() -> libbpf_rs::Result<Self> {
        let mut storage = MaybeUninit::uninit();
        let open = skeletons::observer::ObserverSkelBuilder::default().open(&mut storage)?;
        let loaded = open.load()?;
        Ok(Self {
            links: vec![(LINK.to_owned(), loaded.progs.observe.attach()?)],
            maps: [
                MapHandle::try_from(&loaded.maps.watch)?,
                MapHandle::try_from(&loaded.maps.statistics)?,
            ],
        })
    }

    fn congestion_controls() -> libbpf_rs::Result<Self> {
        let taken = fs::read_to_string(AVAILABLE).unwrap_or_default();
        let mut number = 1;
        loop {
            let names = FAMILIES.map(|family| numbered(family, number));
            let is_taken = |name: &String| taken.split_whitespace().any(|other| other == name);
            if !names.iter().any(is_taken) {
                match Self::named(&names) {
                    // Another process has taken one of the names.
                    Err(error) if error.kind() == libbpf_rs::ErrorKind::AlreadyExists => {}
                    result => return result,
                }
            }
            number += 1;
            if number > NUMBERS {
                let error = io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "the kernel has congestion controls of all of our names",
                );
                return Err(error.into());
            }
        }
    }

    fn named(names: &[String; FAMILIES.len()]) -> libbpf_rs::Result<Self> {
        let mut storage = MaybeUninit::uninit();
        let mut open =
            skeletons::congestion::CongestionSkelBuilder::default().open(&mut storage)?;
        let [vegas, cdg, cubic] = names;
        set_name(&mut open.struct_ops.vegas_mut().name, vegas);
        set_name(&mut open.struct_ops.cdg_mut().name, cdg);
        set_name(&mut open.struct_ops.cubic_mut().name, cubic);
        let mut loaded = open.load()?;
        let maps = &mut loaded.maps;
        Ok(Self {
            links: vec![
                (vegas.clone(), maps.vegas.attach_struct_ops()?),
                (cdg.clone(), maps.cdg.attach_struct_ops()?),
                (cubic.clone(), maps.cubic.attach_struct_ops()?),
            ],
            maps: [
                MapHandle::try_from(&maps.parameters)?,
                MapHandle::try_from(&maps.state)?,
            ],
        })
    }

    /// Pins all of it in the unfinished directory of `place`, and lets everybody
    /// use the maps. An update of a map needs the rights to read and to write, a
    /// look-up the right to read. The descriptor of a socket decides on the entry.
    pub(crate) fn pin(mut self, place: &PinDirectory) -> Result<(), SetupError> {
        let directory = place.unfinished();
        let shared = |path: &Path, mode, pinned: libbpf_rs::Result<()>| {
            pinned
                .map_err(|error| io_error(&error))
                .and_then(|()| fs::set_permissions(path, Permissions::from_mode(mode)))
                .map_err(failed_to("pin", path))
        };
        let modes = [0o666, 0o444];
        for ((name, mode), map) in place.maps().iter().zip(modes).zip(&mut self.maps) {
            let path = directory.join(name);
            shared(&path, mode, map.pin(&path))?;
        }
        for (name, link) in &mut self.links {
            let path = directory.join(name);
            shared(&path, 0o600, link.pin(&path))?;
        }
        Ok(())
    }
}

/// The name of a family's congestion control, the first of which has no number.
fn numbered(family: &str, number: u32) -> String {
    match number {
        1 => format!("{PREFIX}{family}"),
        _ => format!("{PREFIX}{family}{number}"),
    }
}

fn set_name(field: &mut [i8; 16], name: &str) {
    *field = [0; 16];
    for (to, from) in field[..15].iter_mut().zip(name.bytes()) {
        // Ours are ASCII.
        *to = from as i8;
    }
}

/// What libbpf has said, instead of saying it on standard error.
static LOG: Mutex<String> = Mutex::new(String::new());

#[allow(
    clippy::needless_pass_by_value,
    reason = "a callback of libbpf-rs, which hands the text over"
)]
fn keep(_level: PrintLevel, text: String) {
    let mut log = LOG.lock().unwrap_or_else(PoisonError::into_inner);
    log.push_str(&text);
}
