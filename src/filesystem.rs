//! What kind of file system a path is on. SQLite's write-ahead log and OS file locks need one whose
//! locks and mapped memory every participant sees, so `doctor` warns of the others.

use std::path::Path;

use rustix::fs::{StatFs, statfs};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSystem {
    /// The kernel's name for it, or the number of a type not known here.
    pub name: String,
    pub class: Class,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    Local,
    /// Other machines may have it mounted, too.
    Network,
    /// Shared between a virtual machine and its host, each with its own locks and page cache.
    CrossKernel,
    /// Its content is gone after a restart.
    Memory,
    Unknown,
}

/// The file system of `path`, or of its nearest ancestor that exists.
pub fn kind(path: &Path) -> FileSystem {
    let name = path
        .ancestors()
        .find_map(|existing| Some(name(existing, &statfs(existing).ok()?)))
        .unwrap_or_else(|| "unknown".to_owned());
    FileSystem { class: class(&name), name }
}

/// Why nothing should be written to a board at `path`, which lies on `found`; none if there is no
/// objection.
pub fn objection(found: &FileSystem, path: &Path) -> Option<String> {
    let who = match found.class {
        Class::Network => "other machines",
        Class::CrossKernel => "the machine at the other side",
        Class::Local | Class::Memory | Class::Unknown => return None,
    };
    Some(format!(
        "{} is on {}, where file locks and SQLite's write-ahead log do not hold against {who}, so \
         nothing is written there; move the board to a local disk with --dir or COORDINATION_DIR, \
         or share it with `callboard serve`. If one machine alone uses it, pass \
         --allow-network-filesystem, set CALLBOARD_ALLOW_NETWORK_FILESYSTEM=1, or write \
         allow_network_filesystem = true in its config.toml, and start this process again",
        path.display(),
        found.name
    ))
}

fn class(name: &str) -> Class {
    match name {
        "ext" | "xfs" | "btrfs" | "zfs" | "f2fs" | "overlay" | "exfat" | "vfat" | "wslfs"
        | "fuseblk" | "apfs" | "hfs" | "ufs" | "ffs" | "msdos" => Class::Local,
        "nfs" | "smb" | "cifs" | "smb2" | "smbfs" | "ceph" | "lustre" | "gpfs" | "orangefs"
        | "coda" | "ncp" | "afs" | "afpfs" | "webdav" | "fuse.sshfs" | "fuse.rclone"
        | "fuse.s3fs" | "fuse.glusterfs" | "fuse.gcsfuse" | "fuse.davfs" | "fuse.smbnetfs"
        | "fuse.juicefs" => Class::Network,
        // WSL shows the Windows drives as 9p or virtiofs.
        "9p" | "p9fs" | "virtiofs" | "AppleVirtIOFS" | "vboxsf" | "vmhgfs" | "fuse.vmhgfs-fuse"
        | "fuse.grpcfuse" | "drvfs" | "prl_fs" | "fuse.prl_fsd" | "fuse.osxfs" => {
            Class::CrossKernel
        }
        "tmpfs" | "ramfs" | "mfs" => Class::Memory,
        _ => Class::Unknown,
    }
}

/// Numbers of file system types, from statfs(2) and the kernel's linux/magic.h.
#[cfg(target_os = "linux")]
#[rustfmt::skip]
const MAGIC: &[(u32, &str)] = &[
    (0x0000_EF53, "ext"), (0x5846_5342, "xfs"), (0x9123_683E, "btrfs"), (0x2FC1_2FC1, "zfs"), (0xF2F5_2010, "f2fs"),
    (0x794C_7630, "overlay"), (0x2011_BAB0, "exfat"), (0x0000_4D44, "vfat"), (0x5346_4846, "wslfs"),
    (0x0000_6969, "nfs"), (0x0000_517B, "smb"), (0xFF53_4D42, "cifs"), (0xFE53_4D42, "smb2"), (0x00C3_6400, "ceph"),
    (0x0BD0_0BD0, "lustre"), (0x4750_4653, "gpfs"), (0x2003_0528, "orangefs"), (0x7375_7245, "coda"), (0x0000_564C, "ncp"),
    (0x6B41_4653, "afs"), (0x0102_1997, "9p"), (0x786F_4256, "vboxsf"), (0xBACB_ACBC, "vmhgfs"),
    (0x0102_1994, "tmpfs"), (0x8584_58F6, "ramfs"), (0x6573_5546, "fuse"),
];

#[cfg(target_os = "linux")]
fn name(path: &Path, stats: &StatFs) -> String {
    // The field's type differs by platform, the numbers have 32 bits.
    let magic = stats.f_type as u32;
    match MAGIC.iter().find(|(number, _)| *number == magic) {
        Some((_, "fuse")) => mounted_as(path).unwrap_or_else(|| "fuse".to_owned()),
        Some((_, name)) => (*name).to_owned(),
        None => format!("{magic:#x}"),
    }
}

/// The name of the FUSE file system at `path`: many share that number, but the mount table has the
/// name, in the field after ` - `.
#[cfg(target_os = "linux")]
fn mounted_as(path: &Path) -> Option<String> {
    let device = rustix::fs::stat(path).ok()?.st_dev;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let device = format!("{major}:{minor}");
    named_in(&fs_err::read_to_string("/proc/self/mountinfo").ok()?, &device)
}

/// The type of the file system on `device`, as `major:minor`, in a table of mounts; see
/// proc_pid_mountinfo(5).
#[cfg(target_os = "linux")]
fn named_in(table: &str, device: &str) -> Option<String> {
    let mount = table.lines().find(|line| line.split(' ').nth(2) == Some(device))?;
    Some(mount.split_once(" - ")?.1.split(' ').next()?.to_owned())
}

#[cfg(any(
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "dragonfly",
    target_os = "openbsd"
))]
fn name(_path: &Path, stats: &StatFs) -> String {
    let bytes = stats.f_fstypename.iter().map(|byte| byte.to_ne_bytes()[0]);
    String::from_utf8_lossy(&bytes.take_while(|byte| *byte != 0).collect::<Vec<u8>>()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_and_other_kernels_are_told_from_local_disks() {
        assert_eq!(class("ext"), Class::Local);
        assert_eq!(class("fuse.sshfs"), Class::Network);
        assert_eq!(class("9p"), Class::CrossKernel);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn every_known_number_has_its_class() {
        let of = |number: u32| {
            MAGIC.iter().find(|(magic, _)| *magic == number).map(|(_, name)| class(name))
        };
        for network in [
            0x6969,
            0xFF53_4D42,
            0xFE53_4D42,
            0x517B,
            0x00C3_6400,
            0x6B41_4653,
            0x0BD0_0BD0,
            0x4750_4653,
        ] {
            assert_eq!(of(network), Some(Class::Network), "{network:#x}");
        }
        for shared in [0x0102_1997, 0x786F_4256, 0xBACB_ACBC] {
            assert_eq!(of(shared), Some(Class::CrossKernel), "{shared:#x}");
        }
        for local in [0xEF53, 0x5846_5342, 0x9123_683E, 0x2FC1_2FC1, 0x794C_7630] {
            assert_eq!(of(local), Some(Class::Local), "{local:#x}");
        }
        assert_eq!(of(0x0102_1994), Some(Class::Memory));
        let unnamed: Vec<_> = MAGIC
            .iter()
            .filter(|(_, name)| *name != "fuse" && class(name) == Class::Unknown)
            .collect();
        assert!(unnamed.is_empty(), "{unnamed:?}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn fuse_is_told_by_the_table_of_mounts() {
        let table = "29 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
                     53 29 0:45 / /home/me/far rw,nosuid - fuse.sshfs me@far:/home rw,user_id=1000\n\
                     54 29 0:46 / /mnt/host rw master:3 propagate_from:2 - virtiofs host rw\n\
                     55 29 0:47 / /mnt/c rw - 9p drvfs rw,aname=drvfs;path=C:\\\\\n\
                     56 29 0:48 / /odd/\\040-\\040dir rw - fuse.glusterfs a:/v rw\n";
        for (device, name, class_of) in [
            ("0:45", "fuse.sshfs", Class::Network),
            ("0:46", "virtiofs", Class::CrossKernel),
            ("0:47", "9p", Class::CrossKernel),
            ("0:48", "fuse.glusterfs", Class::Network),
            ("254:0", "ext4", Class::Unknown),
        ] {
            assert_eq!(named_in(table, device).as_deref(), Some(name));
            assert_eq!(class(name), class_of, "{name}");
        }
        assert_eq!(named_in(table, "0:99"), None);
    }

    #[test]
    fn only_what_is_shared_is_objected_to_and_the_message_says_what_to_do() {
        let on = |class| {
            objection(&FileSystem { name: "nfs".to_owned(), class }, Path::new("/far/board"))
        };
        for shared in [Class::Network, Class::CrossKernel] {
            let text = on(shared).unwrap();
            for part in
                ["/far/board", "nfs", "--dir", "--allow-network-filesystem", "callboard serve"]
            {
                assert!(text.contains(part), "{part}: {text}");
            }
        }
        for own in [Class::Local, Class::Memory, Class::Unknown] {
            assert_eq!(on(own), None);
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn proc_is_not_a_place_for_a_board() {
        assert_eq!(kind(Path::new("/proc/self")).class, Class::Unknown);
    }

    #[test]
    fn a_path_that_does_not_exist_is_on_its_ancestors_file_system() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        assert_eq!(kind(&dir.path().join("a/b/c")), kind(dir.path()));
    }
}
