//! Loads a rival into the kernel.
//!
//! All of the machine sees the name of a congestion control. So each lab loads its own
//! under a name with a number that is free, uses that one, and takes it away at its
//! end, also if it is killed: the kernel does so with the lab's descriptor. What
//! another lab has loaded, perhaps of other sources, is left alone, and labs side by
//! side do not depend on each other.

use std::io;

#[cfg(not(feature = "bpf"))]
pub use self::not_built::LoadedRival;
#[cfg(feature = "bpf")]
pub use self::programs::LoadedRival;

/// Why a rival cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum RivalError {
    /// The feature `bpf` was off.
    #[error("this lab was built without eBPF; build it with its default features")]
    NotBuilt,
    /// The kernel does not describe its types.
    #[error("this kernel has no BTF; it takes one with CONFIG_DEBUG_INFO_BTF")]
    NoBtf,
    /// The kernel refuses it; what it said in detail is on standard error.
    #[error("the kernel refuses it: {0}; it takes Linux 6.4 with CONFIG_BPF_JIT")]
    Refused(#[source] io::Error),
    /// Every name is taken.
    #[error("the kernel has congestion controls of all of its names")]
    NoName,
}

#[cfg(feature = "bpf")]
mod programs {
    use std::fs;
    use std::io;
    use std::mem::MaybeUninit;
    use std::path::Path;

    use libbpf_rs::skel::{OpenSkel, SkelBuilder};
    use libbpf_rs::{ErrorKind, Link};
    use nix::errno::Errno;

    use super::RivalError;
    use crate::rivals::{LedbatParameters, Rival};

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
        pub(crate) mod ledbat {
            include!(concat!(env!("OUT_DIR"), "/ledbat.skel.rs"));
        }
        pub(crate) mod ledbat_pp {
            include!(concat!(env!("OUT_DIR"), "/ledbat_pp.skel.rs"));
        }
        pub(crate) mod tcp_lp {
            include!(concat!(env!("OUT_DIR"), "/tcp_lp.skel.rs"));
        }
        pub(crate) mod tcp_lp_linux {
            include!(concat!(env!("OUT_DIR"), "/tcp_lp_linux.skel.rs"));
        }
    }

    use self::skeletons::ledbat::LedbatSkelBuilder;
    use self::skeletons::ledbat_pp::LedbatPpSkelBuilder;
    use self::skeletons::tcp_lp::TcpLpSkelBuilder;
    use self::skeletons::tcp_lp_linux::TcpLpLinuxSkelBuilder;

    /// Where a kernel that can relocate the programs' types describes its own.
    const BTF: &str = "/sys/kernel/btf/vmlinux";

    /// The congestion controls that the kernel has, in every network namespace.
    const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

    /// Names are tried up to this number.
    const NUMBERS: u32 = 99;

    /// A rival that any socket of the machine can have; gone when this is dropped.
    /// Connections that have it keep it.
    #[derive(Debug)]
    pub struct LoadedRival {
        name: String,
        _link: Link,
    }

    impl LoadedRival {
        /// Loads it under a name of its own.
        ///
        /// # Errors
        /// The kernel cannot take it, or this process may not load it.
        pub fn new(rival: Rival) -> Result<Self, RivalError> {
            if !Path::new(BTF).exists() {
                return Err(RivalError::NoBtf);
            }
            let taken = fs::read_to_string(AVAILABLE).unwrap_or_default();
            for number in 1..=NUMBERS {
                let name = format!("{}_{number}", rival.stem());
                if taken.split_whitespace().any(|other| other == name) {
                    continue;
                }
                match attach(rival, &name) {
                    Ok(link) => return Ok(Self { name, _link: link }),
                    // Another lab has just taken it.
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                    Err(error) => return Err(RivalError::Refused(io_error(&error))),
                }
            }
            Err(RivalError::NoName)
        }

        /// The kernel's name for it.
        #[must_use]
        pub fn name(&self) -> &str {
            &self.name
        }
    }

    fn attach(rival: Rival, name: &str) -> libbpf_rs::Result<Link> {
        match rival {
            Rival::Ledbat | Rival::LedbatA | Rival::LedbatEarly => {
                let mut storage = MaybeUninit::uninit();
                let mut open = LedbatSkelBuilder::default().open(&mut storage)?;
                set_name(&mut open.struct_ops.control_mut().name, name);
                let parameters = open.maps.rodata_data.as_deref_mut();
                let parameters = parameters.expect("it has parameters");
                let own = rival.ledbat().unwrap_or(LedbatParameters::RFC);
                parameters.target_us = own.target_us;
                parameters.gain_q16 = own.gain_q16;
                parameters.least_window = own.least_window;
                parameters.has_slow_start = u32::from(own.has_slow_start);
                open.load()?.maps.control.attach_struct_ops()
            }
            Rival::LedbatPlusPlus => {
                let mut storage = MaybeUninit::uninit();
                let mut open = LedbatPpSkelBuilder::default().open(&mut storage)?;
                set_name(&mut open.struct_ops.control_mut().name, name);
                open.load()?.maps.control.attach_struct_ops()
            }
            Rival::TcpLp => {
                let mut storage = MaybeUninit::uninit();
                let mut open = TcpLpSkelBuilder::default().open(&mut storage)?;
                set_name(&mut open.struct_ops.control_mut().name, name);
                open.load()?.maps.control.attach_struct_ops()
            }
            Rival::TcpLpLinux => {
                let mut storage = MaybeUninit::uninit();
                let mut open = TcpLpLinuxSkelBuilder::default().open(&mut storage)?;
                set_name(&mut open.struct_ops.control_mut().name, name);
                open.load()?.maps.control.attach_struct_ops()
            }
        }
    }

    /// Ours are ASCII, and short enough.
    fn set_name(field: &mut [i8; 16], name: &str) {
        *field = [0; 16];
        for (to, from) in field[..15].iter_mut().zip(name.bytes()) {
            *to = from as i8;
        }
    }

    /// A lack of rights (EPERM) is told apart from everything else. The verifier refuses
    /// a faulty program with EACCES, which libbpf-rs calls by the same name.
    fn io_error(error: &libbpf_rs::Error) -> io::Error {
        let text = format!("{error:#}");
        let kind = match text.contains(&io::Error::from(Errno::EPERM).to_string()) {
            true => io::ErrorKind::PermissionDenied,
            false => io::ErrorKind::Other,
        };
        io::Error::new(kind, text)
    }
}

/// Takes the place of the programs in a build without the feature `bpf`.
#[cfg(not(feature = "bpf"))]
mod not_built {
    use super::RivalError;
    use crate::rivals::Rival;

    /// There is none.
    #[derive(Debug)]
    pub enum LoadedRival {}

    impl LoadedRival {
        /// Fails: this build has no programs.
        ///
        /// # Errors
        /// Always [`RivalError::NotBuilt`].
        pub fn new(_rival: Rival) -> Result<Self, RivalError> {
            Err(RivalError::NotBuilt)
        }

        /// The kernel's name for it.
        #[must_use]
        pub fn name(&self) -> &str {
            match *self {}
        }
    }
}
