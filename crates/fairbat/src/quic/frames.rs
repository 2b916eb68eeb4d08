//! The frames of HTTP/3 (RFC 9114, section 7.1), as far as h3 does not look at them: it collects a
//! frame that is no data to its end, however long that is, and takes data that break off for whole.

/// The type of frames that carry the body.
const DATA: u64 = 0;

/// The type of the stream that has frames, of those in one direction (section 6.2.1).
const CONTROL: u64 = 0;

/// Longest frame that is no data, bytes: the fields of a message, mostly.
const MAX_COLLECTED: u64 = 64 * 1024;

/// What is wrong with the frames of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WrongFrame {
    #[error("a frame of {0} bytes that carries no data")]
    Long(u64),
    #[error("it ended within a frame")]
    Cut,
}

/// Follows the frames of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frames {
    at: At,
    number: Number,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// The type of a stream in one direction.
    StreamType,
    Type,
    /// The length of a frame of this type.
    Length(u64),
    /// So many bytes of a frame are missing.
    Content(u64),
    /// There are no frames.
    Other,
}

/// A number of variable length (RFC 9000, section 16) that has come in part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Number {
    value: u64,
    /// Bytes that are missing; 0 before the first one.
    missing: u32,
}

impl Number {
    /// Takes the next byte. Returns the number if that was the last one.
    fn take(&mut self, byte: u8) -> Option<u64> {
        let (value, missing) = match self.missing {
            0 => (u64::from(byte & 0x3f), (1 << (byte >> 6)) - 1),
            missing => (self.value << 8 | u64::from(byte), missing - 1),
        };
        *self = Self { value, missing };
        (missing == 0).then_some(value)
    }
}

impl Frames {
    /// Of a stream in both directions, which carries a request and its answer.
    pub(crate) fn of_message() -> Self {
        Self {
            at: At::Type,
            number: Number::default(),
        }
    }

    /// Of a stream in one direction, which begins with its type.
    pub(crate) fn of_other() -> Self {
        Self {
            at: At::StreamType,
            number: Number::default(),
        }
    }

    /// These bytes have come.
    ///
    /// # Errors
    /// A frame begins that is too long.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) -> Result<(), WrongFrame> {
        while let Some((&byte, rest)) = bytes.split_first() {
            match self.at {
                At::Other => return Ok(()),
                At::Content(missing) => {
                    let come = missing.min(bytes.len() as u64);
                    self.at = match missing - come {
                        0 => At::Type,
                        missing => At::Content(missing),
                    };
                    bytes = &bytes[come as usize..];
                }
                At::StreamType | At::Type | At::Length(_) => {
                    if let Some(number) = self.number.take(byte) {
                        self.at = self.after(number)?;
                    }
                    bytes = rest;
                }
            }
        }
        Ok(())
    }

    /// What comes after a number.
    fn after(&self, number: u64) -> Result<At, WrongFrame> {
        Ok(match self.at {
            At::StreamType if number == CONTROL => At::Type,
            At::StreamType => At::Other,
            At::Length(DATA) if number > 0 => At::Content(number),
            At::Length(_) if number > MAX_COLLECTED => return Err(WrongFrame::Long(number)),
            At::Length(_) if number == 0 => At::Type,
            At::Length(_) => At::Content(number),
            _ => At::Length(number),
        })
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// A frame has not.
    pub(crate) fn end(&self) -> Result<(), WrongFrame> {
        let is_between = self.at == At::Type && self.number.missing == 0;
        match is_between || matches!(self.at, At::Other | At::StreamType) {
            true => Ok(()),
            false => Err(WrongFrame::Cut),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with a length of four bytes.
    fn frame(kind: u8, length: u32, content: usize) -> Vec<u8> {
        let mut frame = vec![kind];
        frame.extend((0x8000_0000 | length).to_be_bytes());
        frame.extend(vec![7; content]);
        frame
    }

    fn outcome(mut frames: Frames, bytes: &[u8], piece: usize) -> Result<(), WrongFrame> {
        for piece in bytes.chunks(piece) {
            frames.take(piece)?;
        }
        frames.end()
    }

    #[test]
    fn frames_are_followed_however_they_come() {
        let whole = [frame(1, 20, 20), frame(0, 0, 0), frame(0, 300, 300)].concat();
        let cut = &whole[..whole.len() - 1];
        let long = [frame(1, 20, 20), frame(0x21, 100_000, 0)].concat();
        for piece in [1, 2, 7, 1000] {
            let of = |bytes| outcome(Frames::of_message(), bytes, piece);
            assert_eq!(of(&whole), Ok(()));
            assert_eq!(of(cut), Err(WrongFrame::Cut));
            assert_eq!(of(&whole[..27]), Err(WrongFrame::Cut));
            assert_eq!(of(&long), Err(WrongFrame::Long(100_000)));
            assert_eq!(of(&[]), Ok(()));
        }
    }

    #[test]
    fn of_streams_in_one_direction_only_the_control_stream_has_frames() {
        let frames = frame(0x21, 100_000, 0);
        let control = [&[0], frames.as_slice()].concat();
        let other = [&[2], frames.as_slice()].concat();
        let of = |bytes: &[u8]| outcome(Frames::of_other(), bytes, 3);
        assert_eq!(of(&control), Err(WrongFrame::Long(100_000)));
        assert_eq!(of(&other), Ok(()));
    }
}
