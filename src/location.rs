//! Which directory the board is in, and why.

use std::ffi::OsStr;
use std::fmt;
use std::iter::successors;
use std::path::{Path, PathBuf};

use fs_err as fs;

use crate::worktree::Repository;

/// The board's directory in a project.
pub const BOARD_DIR: &str = ".coordination";

/// What a process knows about where it was started. An empty `env` counts as unset.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// `--dir`
    pub dir: Option<&'a Path>,
    /// `COORDINATION_DIR`
    pub env: Option<&'a OsStr>,
    pub cwd: &'a Path,
    /// The folder that the client has open, where it says so: Cursor starts servers in the home directory and sets
    /// `WORKSPACE_FOLDER_PATHS`. It replaces a `cwd` in which no board is made.
    pub workspace: Option<&'a Path>,
    pub home: Option<&'a Path>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Absolute; it need not exist.
    pub dir: PathBuf,
    pub source: Source,
    forbidden: Option<Forbidden>,
}

/// What decided on the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Option,
    Environment,
    /// A board that was there, in the start directory or above it.
    Found,
    /// The main worktree's root, or one above it, so that all worktrees share one board. A repository within another,
    /// as a submodule is, has the board of that one's main worktree, if there is one.
    Repository,
    StartDirectory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Forbidden {
    Home,
    Root,
}

#[derive(Debug, thiserror::Error)]
pub enum LocationError {
    #[error(
        "from where this process was started its board would be in {place}, `{}`, and none is kept there; start the \
         client from the project, or name the project's board in the client's configuration: \
         `--dir PROJECT/.coordination` in the server's arguments or COORDINATION_DIR in its environment \
         (`callboard connect CLIENT --dir PROJECT/.coordination` writes it)",
        dir.display()
    )]
    Forbidden { place: &'static str, dir: PathBuf },
}

impl LocationError {
    /// The message for a person who types a command and has configured no client yet.
    pub fn typed(&self) -> String {
        let Self::Forbidden { place, dir } = self;
        format!(
            "from here the board would be in {place}, `{}`, and none is kept there; change to your project, or name the \
             board with --dir PROJECT/.coordination",
            dir.display()
        )
    }
}

impl Location {
    /// Decides where the board is. Looks at directories, changes nothing.
    pub fn of(start: &Start<'_>) -> Self {
        let env = start.env.filter(|env| !env.is_empty()).map(Path::new);
        if let Some(dir) = start.dir {
            return Self::named(start.cwd.join(dir), Source::Option);
        }
        if let Some(dir) = env {
            return Self::named(start.cwd.join(dir), Source::Environment);
        }
        let grounds = Grounds::of(start);
        let cwd = grounds.start_directory(start);
        // A home directory that is a repository holds its owner's settings, and has projects below it all the same.
        let roots = || {
            let around = successors(Repository::containing(&cwd), Repository::around).map(|one| one.main_root());
            around.filter(|root| grounds.forbidden(root).is_none())
        };
        grounds
            .board_above(&cwd, Source::Found)
            .or_else(|| roots().find_map(|root| grounds.board_above(&root, Source::Repository)))
            .or_else(|| roots().next().map(|root| grounds.board_in(&root, Source::Repository)))
            .unwrap_or_else(|| grounds.board_in(&cwd, Source::StartDirectory))
    }

    /// Whether a board may be made here. One that exists in a home directory or `/` was made by name and is used by
    /// name only: ask before opening, too.
    pub fn may_create(&self) -> Result<(), LocationError> {
        let place = match self.forbidden {
            None => return Ok(()),
            Some(Forbidden::Home) => "a home directory",
            Some(Forbidden::Root) => "the root directory",
        };
        let dir = self.dir.parent().unwrap_or(&self.dir).to_owned();
        Err(LocationError::Forbidden { place, dir })
    }

    /// Whether `dir` may hold a project, in which a board is made without being named.
    pub fn is_ground(dir: &Path, home: Option<&Path>) -> bool {
        Grounds { home: home.map(canonical) }.forbidden(&canonical(dir)).is_none()
    }

    /// The last name stays as it was given, so that whoever opens the board can refuse a symbolic link.
    fn named(dir: PathBuf, source: Source) -> Self {
        Self {
            dir: match (dir.parent(), dir.file_name()) {
                (Some(parent), Some(name)) => canonical(parent).join(name),
                _ => canonical(&dir),
            },
            source,
            forbidden: None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Option => "given by --dir",
            Self::Environment => "given by COORDINATION_DIR",
            Self::Found => "the nearest .coordination upwards",
            Self::Repository => "the git repository's main worktree",
            Self::StartDirectory => "the directory this process was started in",
        })
    }
}

/// Tells in which directories no board is made unless it is named.
struct Grounds {
    home: Option<PathBuf>,
}

impl Grounds {
    fn of(start: &Start<'_>) -> Self {
        Self { home: start.home.map(canonical) }
    }

    fn forbidden(&self, dir: &Path) -> Option<Forbidden> {
        if dir.parent().is_none() {
            return Some(Forbidden::Root);
        }
        (self.home.as_deref() == Some(dir)).then_some(Forbidden::Home)
    }

    fn start_directory(&self, start: &Start<'_>) -> PathBuf {
        let cwd = canonical(start.cwd);
        match start.workspace.filter(|folder| folder.is_absolute() && folder.is_dir()) {
            Some(folder) if self.forbidden(&cwd).is_some() => canonical(folder),
            _ => cwd,
        }
    }

    /// The nearest board that exists, in `start` or above it.
    fn board_above(&self, start: &Path, source: Source) -> Option<Location> {
        let has_board = |dir: &&Path| self.forbidden(dir).is_none() && dir.join(BOARD_DIR).is_dir();
        start.ancestors().find(has_board).map(|dir| self.board_in(dir, source))
    }

    fn board_in(&self, dir: &Path, source: Source) -> Location {
        Location { dir: dir.join(BOARD_DIR), source, forbidden: self.forbidden(dir) }
    }
}

/// One name for one directory, whichever way a client reached it. What does not exist yet keeps its name below the part
/// that does.
fn canonical(path: &Path) -> PathBuf {
    path.ancestors()
        .find_map(|existing| {
            let base = fs::canonicalize(existing).ok()?;
            let rest = path.strip_prefix(existing).ok()?;
            Some(if rest.as_os_str().is_empty() { base } else { base.join(rest) })
        })
        .unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Disk {
        _guard: tempfile::TempDir,
        base: PathBuf,
    }

    impl Disk {
        fn with(dirs: &[&str]) -> Self {
            let guard = tempfile::tempdir().expect("a temporary directory");
            let base = fs::canonicalize(guard.path()).expect("canonical");
            for dir in dirs {
                fs::create_dir_all(base.join(dir)).expect("a directory");
            }
            Self { _guard: guard, base }
        }

        fn git(self, root: &str) -> Self {
            for dir in ["objects", "refs"] {
                fs::create_dir_all(self.base.join(root).join(".git").join(dir)).expect("a directory");
            }
            fs::write(self.base.join(root).join(".git/HEAD"), "ref: refs/heads/main\n").expect("HEAD");
            self
        }

        fn linked(self, root: &str, worktree: &str) -> Self {
            let git_dir = self.base.join(root).join(".git/worktrees/w");
            fs::create_dir_all(&git_dir).expect("a directory");
            fs::write(git_dir.join("HEAD"), "ref: refs/heads/topic\n").expect("HEAD");
            fs::write(git_dir.join("commondir"), "../..\n").expect("commondir");
            fs::write(self.base.join(worktree).join(".git"), format!("gitdir: {}\n", git_dir.display())).expect(".git");
            self
        }

        fn from(&self, cwd: &str) -> Location {
            self.start(cwd, |start| Location::of(&start))
        }

        fn start(&self, cwd: &str, ask: impl FnOnce(Start<'_>) -> Location) -> Location {
            let (cwd, home) = (self.base.join(cwd), self.base.join("home"));
            ask(Start { dir: None, env: None, cwd: &cwd, workspace: None, home: Some(&home) })
        }

        fn is(&self, location: &Location, dir: &str, source: Source) {
            assert_eq!((location.dir.as_path(), location.source), (self.base.join(dir).as_path(), source));
        }
    }

    #[test]
    fn a_named_directory_wins_in_order_and_may_be_anywhere() {
        let disk = Disk::with(&["home", "p/.coordination"]);
        let env = Some(OsStr::new("elsewhere"));
        let dir = Some(Path::new("../home/.coordination"));
        let both = disk.start("p", |start| Location::of(&Start { dir, env, ..start }));
        disk.is(&both, "home/.coordination", Source::Option);
        both.may_create().expect("allowed by name");
        let named = disk.start("p", |start| Location::of(&Start { env, ..start }));
        disk.is(&named, "p/elsewhere", Source::Environment);
        let env = Some(OsStr::new(""));
        let empty = disk.start("p", |start| Location::of(&Start { env, ..start }));
        disk.is(&empty, "p/.coordination", Source::Found);
    }

    #[test]
    fn the_nearest_board_upwards_wins_over_the_repository() {
        let disk = Disk::with(&["home", "p/.coordination", "p/q/src"]).git("p/q");
        disk.is(&disk.from("p/q/src"), "p/.coordination", Source::Found);
        fs::create_dir(disk.base.join("p/q/.coordination")).expect("a board");
        disk.is(&disk.from("p/q/src"), "p/q/.coordination", Source::Found);
    }

    #[test]
    fn a_linked_worktree_uses_the_main_worktrees_board() {
        let disk = Disk::with(&["home", "w/src"]).git("projects/p").linked("projects/p", "w");
        disk.is(&disk.from("w/src"), "projects/p/.coordination", Source::Repository);
        fs::create_dir(disk.base.join("projects/.coordination")).expect("a board");
        disk.is(&disk.from("w/src"), "projects/.coordination", Source::Repository);
    }

    #[test]
    fn a_repository_within_a_linked_worktree_uses_the_board_of_that_ones_main_worktree() {
        let disk = Disk::with(&["home", "w/sub/src"]).git("p").linked("p", "w").git("w/sub");
        disk.is(&disk.from("w/sub/src"), "w/sub/.coordination", Source::Repository);
        fs::create_dir(disk.base.join("p/.coordination")).expect("a board");
        disk.is(&disk.from("w/sub/src"), "p/.coordination", Source::Repository);
        fs::create_dir(disk.base.join("w/sub/.coordination")).expect("a board");
        disk.is(&disk.from("w/sub/src"), "w/sub/.coordination", Source::Found);
    }

    #[test]
    fn outside_everything_the_start_directory_is_used() {
        let disk = Disk::with(&["home", "p"]);
        let location = disk.from("p");
        disk.is(&location, "p/.coordination", Source::StartDirectory);
        location.may_create().expect("allowed");
    }

    #[test]
    fn a_board_in_the_home_directory_is_not_found_and_none_is_made() {
        let disk = Disk::with(&["home/.coordination", "home/notes"]);
        disk.is(&disk.from("home/notes"), "home/notes/.coordination", Source::StartDirectory);
        let refusal = disk.from("home").may_create().expect_err("refused").to_string();
        assert!(refusal.contains("--dir") && refusal.contains("COORDINATION_DIR"), "{refusal}");
    }

    #[test]
    fn a_home_directory_that_is_a_repository_counts_as_none() {
        let disk = Disk::with(&["home/notes/src"]).git("home");
        let location = disk.from("home/notes");
        disk.is(&location, "home/notes/.coordination", Source::StartDirectory);
        location.may_create().expect("allowed");
        assert!(disk.from("home").may_create().is_err());
        let disk = disk.git("home/notes");
        disk.is(&disk.from("home/notes/src"), "home/notes/.coordination", Source::Repository);
    }

    #[test]
    fn nothing_is_made_in_the_root_directory() {
        let disk = Disk::with(&["home"]);
        let cwd = Path::new("/");
        let root = disk.start("home", |start| Location::of(&Start { cwd, ..start }));
        assert!(root.may_create().is_err());
    }

    #[test]
    fn the_clients_open_folder_replaces_only_a_useless_start_directory() {
        let disk = Disk::with(&["home", "p", "q"]);
        let opened = |cwd: &str, folder: &Path| {
            let workspace = Some(folder);
            disk.start(cwd, |start| Location::of(&Start { workspace, ..start }))
        };
        let folder = disk.base.join("p");
        let from_home = opened("home", &folder);
        disk.is(&from_home, "p/.coordination", Source::StartDirectory);
        let from_project = opened("q", &folder);
        disk.is(&from_project, "q/.coordination", Source::StartDirectory);
        let nonsense = opened("home", Path::new("a,b"));
        assert!(nonsense.may_create().is_err());
    }
}
