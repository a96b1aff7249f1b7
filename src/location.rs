//! Which directory the board is in, and why.

use std::ffi::OsStr;
use std::fmt;
use std::iter::successors;
use std::path::{Component, Path, PathBuf};

use fs_err as fs;

use crate::worktree::{BrokenLink, Repository};

/// The board's directory in a project.
pub(crate) const BOARD_DIR: &str = ".coordination";

/// What a process knows about where it was started. An empty `env` counts as unset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start<'a> {
    /// `--dir`
    pub dir: Option<&'a Path>,
    /// `COORDINATION_DIR`
    pub env: Option<&'a OsStr>,
    /// The project that the client names: `CLAUDE_PROJECT_DIR`. It replaces `cwd`.
    pub project: Option<&'a Path>,
    pub cwd: &'a Path,
    /// The folder that the client has open, where it says so: Cursor starts servers in the home
    /// directory and sets `WORKSPACE_FOLDER_PATHS`. It replaces a `cwd` in which no board is
    /// made.
    pub workspace: Option<&'a Path>,
    pub home: Option<&'a Path>,
    /// Directories of the plugins that started this process: `PLUGIN_ROOT` and
    /// `CLAUDE_PLUGIN_ROOT`.
    pub plugins: [Option<&'a Path>; 2],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    /// Absolute; it need not exist.
    pub dir: PathBuf,
    pub source: Source,
    /// The directory of the project, as far as known: the one that the process was started in, or
    /// that its client names.
    pub start: PathBuf,
    forbidden: Option<Forbidden>,
    /// Whether an option or the environment names the project.
    is_named: bool,
}

/// What decided on the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Option,
    Environment,
    /// A board that was there, in the start directory or above it.
    Found,
    /// The main worktree's root, so that all worktrees share one board. A submodule has the board
    /// of the repository that it is in, if there is one.
    Repository,
    StartDirectory,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Forbidden {
    Home,
    Root,
    Plugin,
    /// A directory in the home directory that programs keep for themselves.
    Private(&'static str),
    Unlinked(BrokenLink),
    /// Its path is not UTF-8, so it cannot be written into messages, configurations and commands.
    Unspeakable,
}

/// Directories in the home directory that programs keep for themselves, and in which they start
/// servers.
const PRIVATE: [&str; 6] = [".cache", "Library/Caches", ".codex", ".claude", ".gemini", ".cursor"];

#[derive(Debug, thiserror::Error)]
pub(crate) enum LocationError {
    #[error(
        "from where this process was started its board would be in {place}, `{}`, and none is kept there; start the \
         client from the project, or name the project's board in the client's configuration: \
         `--dir PROJECT/.coordination` in the server's arguments or COORDINATION_DIR in its environment \
         (`callboard connect CLIENT --dir PROJECT/.coordination` writes it)",
        dir.display()
    )]
    Forbidden { place: String, dir: PathBuf },
    #[error("{0}")]
    Unlinked(BrokenLink),
    #[error(
        "`{}` is not UTF-8, so agents could not be told where the board is; change to the project and leave its name out, or \
         name another directory with --dir", dir.display()
    )]
    Unspeakable { dir: PathBuf },
    #[error(
        "no board in `{}`, and no git repository, so none is made unasked; if this is the project, call \
         init_coordination with its goal; else name the project's board in the client's configuration: \
         `--dir PROJECT/.coordination` in the server's arguments or COORDINATION_DIR in its environment",
        dir.display()
    )]
    NoProject { dir: PathBuf },
}

impl LocationError {
    /// The message for a person who types a command and has configured no client yet.
    pub(crate) fn typed(&self) -> String {
        let Self::Forbidden { place, dir } = self else { return self.to_string() };
        format!(
            "from here the board would be in {place}, `{}`, and none is kept there; change to \
             your project, or name the board with --dir PROJECT/.coordination",
            dir.display()
        )
    }
}

impl Location {
    /// Decides where the board is. Looks at directories, changes nothing.
    pub(crate) fn of(start: &Start<'_>) -> Self {
        let grounds = Grounds::of(start);
        let env = start.env.filter(|env| !env.is_empty()).map(Path::new);
        let (cwd, is_named) = grounds.start_directory(start);
        if let Some(dir) = start.dir {
            return grounds.named(cwd, dir, Source::Option);
        }
        if let Some(dir) = env {
            return grounds.named(cwd, dir, Source::Environment);
        }
        let location =
            grounds.in_repository(&cwd).or_else(|| grounds.board_between(&cwd, Path::new("/")));
        let location = location.unwrap_or_else(|| grounds.board_in(&cwd, Source::StartDirectory));
        Self { is_named, start: cwd, ..location }
    }

    /// Whether a board may be made here. One that exists in a home directory or `/` was made by
    /// name and is used by name only: ask before opening, too.
    pub(crate) fn may_create(&self) -> Result<(), LocationError> {
        let place = match &self.forbidden {
            None => return Ok(()),
            Some(Forbidden::Unlinked(link)) => return Err(LocationError::Unlinked(link.clone())),
            Some(Forbidden::Unspeakable) => {
                return Err(LocationError::Unspeakable { dir: self.dir.clone() });
            }
            Some(Forbidden::Home) => "a home directory".to_owned(),
            Some(Forbidden::Root) => "the root directory".to_owned(),
            Some(Forbidden::Plugin) => "a plugin's own directory".to_owned(),
            Some(Forbidden::Private(name)) => {
                format!("~/{name}, which programs keep for themselves")
            }
        };
        Err(LocationError::Forbidden { place, dir: self.project().to_owned() })
    }

    /// Whether a call that does not ask for a board may make one: only where a project is sure to
    /// be.
    pub(crate) fn may_begin(&self) -> Result<(), LocationError> {
        match self.source {
            Source::StartDirectory if !self.is_named => {
                Err(LocationError::NoProject { dir: self.project().to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// What is wrong with the worktree that this process was started in, if its link to the
    /// repository is broken.
    pub(crate) fn check_link(&self) -> Result<(), LocationError> {
        if matches!(self.forbidden, Some(Forbidden::Unlinked(_))) {
            self.may_create()
        } else {
            Ok(())
        }
    }

    fn project(&self) -> &Path {
        self.dir.parent().unwrap_or(&self.dir)
    }

    /// Whether `dir` may hold a project, in which a board is made without being named.
    pub(crate) fn is_ground(dir: &Path, home: Option<&Path>) -> bool {
        let grounds =
            Grounds { home: home.map(canonical), private: Vec::new(), plugins: Vec::new() };
        grounds.forbidden(&canonical(dir)).is_none()
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

/// Tells in which directories no board is made unless it is named. Links in their paths are
/// resolved.
struct Grounds {
    home: Option<PathBuf>,
    private: Vec<(&'static str, PathBuf)>,
    plugins: Vec<PathBuf>,
}

impl Grounds {
    fn of(start: &Start<'_>) -> Self {
        let private = start
            .home
            .into_iter()
            .flat_map(|home| PRIVATE.map(|name| (name, canonical(&home.join(name)))));
        let plugins =
            start.plugins.into_iter().flatten().filter(|root| root.is_absolute()).map(canonical);
        Self {
            home: start.home.map(canonical),
            private: private.collect(),
            plugins: plugins.filter(|root| root.parent().is_some()).collect(),
        }
    }

    fn forbidden(&self, dir: &Path) -> Option<Forbidden> {
        if dir.parent().is_none() {
            return Some(Forbidden::Root);
        }
        if self.home.as_deref() == Some(dir) {
            return Some(Forbidden::Home);
        }
        self.kept_by_program(dir)
    }

    /// Whether a program that starts servers keeps `dir` for itself.
    fn kept_by_program(&self, dir: &Path) -> Option<Forbidden> {
        if self.plugins.iter().any(|root| dir.starts_with(root)) {
            return Some(Forbidden::Plugin);
        }
        let private = self.private.iter().find(|(_, root)| dir.starts_with(root));
        private.map(|(name, _)| Forbidden::Private(name))
    }

    /// The board that was named. A relative name was meant for a project: no board is made for it
    /// in a directory that a program keeps for itself, or directly below a start directory
    /// where none may be made. The last name stays as it was given, so that opening the board
    /// can refuse a symbolic link.
    fn named(&self, start: PathBuf, name: &Path, source: Source) -> Location {
        let dir = start.join(name);
        let dir = match (dir.parent(), dir.file_name()) {
            (Some(parent), Some(name)) => canonical(parent).join(name),
            _ => canonical(&dir),
        };
        let of_start = || if dir.parent() == Some(&start) { self.forbidden(&start) } else { None };
        let forbidden =
            if name.is_absolute() { None } else { self.kept_by_program(&dir).or_else(of_start) };
        let forbidden =
            forbidden.or_else(|| dir.to_str().is_none().then_some(Forbidden::Unspeakable));
        Location { dir, source, start, forbidden, is_named: true }
    }

    /// The directory from which the board is searched for, and whether it was named.
    fn start_directory(&self, start: &Start<'_>) -> (PathBuf, bool) {
        let folder = |given: Option<&Path>| {
            given.filter(|folder| folder.is_absolute() && folder.is_dir()).map(canonical)
        };
        if let Some(project) = folder(start.project) {
            return (project, true);
        }
        let cwd = canonical(start.cwd);
        match folder(start.workspace) {
            Some(folder) if self.forbidden(&cwd).is_some() => (folder, true),
            _ => (cwd, false),
        }
    }

    /// The board of the repository around `cwd`: in its worktree, in its main worktree, and then,
    /// for a submodule, in the same way of the repository that it is in; else the one that may
    /// be made for it. A home directory that is a repository holds its owner's settings, and
    /// has projects below it all the same.
    fn in_repository(&self, cwd: &Path) -> Option<Location> {
        let is_settings =
            |root: &Path| matches!(self.forbidden(root), Some(Forbidden::Home | Forbidden::Root));
        let around = successors(Repository::containing(cwd), Repository::superproject);
        let chain: Vec<_> = around.take_while(|one| !is_settings(&one.main_root())).collect();
        let innermost = chain.first()?;
        if let Some(link) = chain.iter().find_map(Repository::broken_link) {
            let dir = innermost.root.clone().unwrap_or_else(|| cwd.to_owned());
            let forbidden = Some(Forbidden::Unlinked(link));
            return Some(Location { forbidden, ..self.board_in(&dir, Source::Repository) });
        }
        let here = |one: &Repository| {
            let root = one.root.clone().unwrap_or_else(|| one.main_root());
            let from = if cwd.starts_with(&root) { cwd } else { &root };
            let main = one.main_root();
            self.board_between(from, &root).or_else(|| {
                let found = self.board_between(&main, &main)?;
                Some(Location { source: Source::Repository, ..found })
            })
        };
        chain
            .iter()
            .find_map(here)
            .or_else(|| Some(self.board_in(&innermost.main_root(), Source::Repository)))
    }

    /// The nearest board that exists, in `from` or above it, up to `to`.
    fn board_between(&self, from: &Path, to: &Path) -> Option<Location> {
        let has_board = |dir: &&Path| self.forbidden(dir).is_none() && dir.join(BOARD_DIR).is_dir();
        let dirs = from.ancestors().take_while(|dir| dir.starts_with(to));
        dirs.into_iter().find(has_board).map(|dir| self.board_in(dir, Source::Found))
    }

    fn board_in(&self, dir: &Path, source: Source) -> Location {
        let (start, forbidden) = (dir.to_owned(), self.forbidden(dir));
        Location { dir: dir.join(BOARD_DIR), source, start, forbidden, is_named: false }
    }
}

/// One name for one directory, whichever way a client reached it. What does not exist yet keeps its
/// name below the part that does.
fn canonical(path: &Path) -> PathBuf {
    path.ancestors()
        .find_map(|existing| {
            let base = fs::canonicalize(existing).ok()?;
            let rest = path.strip_prefix(existing).ok()?;
            Some(without_dots(&base.join(rest)))
        })
        .unwrap_or_else(|| path.to_owned())
}

/// Resolves `.` and `..` without asking the disk: `a/../b` becomes `b`.
pub(crate) fn without_dots(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut path, component| {
        match component {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            other => path.push(other),
        }
        path
    })
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
                fs::create_dir_all(self.base.join(root).join(".git").join(dir))
                    .expect("a directory");
            }
            fs::write(self.base.join(root).join(".git/HEAD"), "ref: refs/heads/main\n")
                .expect("HEAD");
            self
        }

        fn linked(self, root: &str, worktree: &str) -> Self {
            let git_dir = self.base.join(root).join(".git/worktrees/w");
            fs::create_dir_all(&git_dir).expect("a directory");
            fs::write(git_dir.join("HEAD"), "ref: refs/heads/topic\n").expect("HEAD");
            fs::write(git_dir.join("commondir"), "../..\n").expect("commondir");
            let dot_git = self.base.join(worktree).join(".git");
            fs::write(git_dir.join("gitdir"), format!("{}\n", dot_git.display())).expect("gitdir");
            fs::write(
                self.base.join(worktree).join(".git"),
                format!("gitdir: {}\n", git_dir.display()),
            )
            .expect(".git");
            self
        }

        fn from(&self, cwd: &str) -> Location {
            self.start(cwd, |start| Location::of(&start))
        }

        fn start(&self, cwd: &str, ask: impl FnOnce(Start<'_>) -> Location) -> Location {
            let (cwd, home) = (self.base.join(cwd), self.base.join("home"));
            let (project, workspace, plugins) = (None, None, [None; 2]);
            ask(Start {
                dir: None,
                env: None,
                project,
                cwd: &cwd,
                workspace,
                home: Some(&home),
                plugins,
            })
        }

        fn is(&self, location: &Location, dir: &str, source: Source) {
            assert_eq!(
                (location.dir.as_path(), location.source),
                (self.base.join(dir).as_path(), source)
            );
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
    fn a_relative_name_makes_no_board_in_a_home_directory_that_a_server_was_started_in() {
        let disk = Disk::with(&["home/notes", "p"]);
        for (dir, env) in
            [(Some(".coordination"), None), (None, Some("board")), (None, Some("./x/../board"))]
        {
            let (dir, env) = (dir.map(Path::new), env.map(OsStr::new));
            let refusal =
                disk.start("home", |start| Location::of(&Start { dir, env, ..start })).may_create();
            assert!(refusal.expect_err("refused").to_string().contains("a home directory"));
        }
        let below = disk.start("home", |start| {
            Location::of(&Start { dir: Some(Path::new("notes/board")), ..start })
        });
        below.may_create().expect("allowed");
        let project = disk.base.join("p");
        let env = Some(OsStr::new("board"));
        let of_client = disk
            .start("home", |start| Location::of(&Start { env, project: Some(&project), ..start }));
        disk.is(&of_client, "p/board", Source::Environment);
        assert_eq!(of_client.start, project);
    }

    #[test]
    fn a_name_that_goes_up_from_what_is_not_there_is_the_same_directory() {
        let disk = Disk::with(&["home", "p"]);
        let dir = Some(Path::new("a/../b/./c/../.coordination"));
        let location = disk.start("p", |start| Location::of(&Start { dir, ..start }));
        disk.is(&location, "p/b/.coordination", Source::Option);
        assert_eq!(without_dots(Path::new("/a/./b/../c")), Path::new("/a/c"));
        assert_eq!(without_dots(Path::new("/../a")), Path::new("/a"));
    }

    #[test]
    fn the_search_upwards_stops_at_the_repositorys_root() {
        let disk = Disk::with(&["home", "p/.coordination", "p/q/src", "p/notes"]).git("p/q");
        disk.is(&disk.from("p/notes"), "p/.coordination", Source::Found);
        disk.is(&disk.from("p/q/src"), "p/q/.coordination", Source::Repository);
        fs::create_dir(disk.base.join("p/q/src/.coordination")).expect("a board");
        disk.is(&disk.from("p/q/src"), "p/q/src/.coordination", Source::Found);
    }

    #[test]
    fn a_linked_worktree_uses_the_main_worktrees_board() {
        let disk = Disk::with(&["home", "w/src", "projects/.coordination"])
            .git("projects/p")
            .linked("projects/p", "w");
        disk.is(&disk.from("w/src"), "projects/p/.coordination", Source::Repository);
        fs::create_dir(disk.base.join("projects/p/.coordination")).expect("a board");
        disk.is(&disk.from("w/src"), "projects/p/.coordination", Source::Repository);
    }

    #[test]
    fn a_submodule_uses_the_board_of_the_repository_that_it_is_in() {
        let disk = Disk::with(&["home", "w/sub/src"]).git("p").linked("p", "w").git("w/sub");
        fs::create_dir(disk.base.join("p/.coordination")).expect("a board");
        disk.is(&disk.from("w/sub/src"), "w/sub/.coordination", Source::Repository);
        fs::write(disk.base.join("w/.gitmodules"), "[submodule \"sub\"]\n\tpath = sub\n")
            .expect("written");
        disk.is(&disk.from("w/sub/src"), "p/.coordination", Source::Repository);
        fs::create_dir(disk.base.join("w/sub/.coordination")).expect("a board");
        disk.is(&disk.from("w/sub/src"), "w/sub/.coordination", Source::Found);
    }

    #[test]
    fn a_worktree_with_a_broken_link_has_no_board() {
        let disk = Disk::with(&["home", "w/src", "w/.coordination"]).git("p").linked("p", "w");
        disk.from("w/src").may_create().expect("linked");
        let refuses = |cwd: &str| {
            let refusal = disk.from(cwd).may_create().expect_err("refused");
            assert!(refusal.to_string().contains("git worktree repair"), "{refusal}");
            assert!(
                disk.from(cwd).check_link().is_err() && !refusal.typed().contains("init"),
                "{refusal}"
            );
        };
        fs::rename(disk.base.join("w"), disk.base.join("moved")).expect("moved");
        refuses("moved/src");
        fs::rename(disk.base.join("moved"), disk.base.join("w")).expect("moved back");
        fs::rename(disk.base.join("p"), disk.base.join("elsewhere")).expect("moved");
        refuses("w/src");
        fs::rename(disk.base.join("elsewhere"), disk.base.join("p")).expect("moved back");
        fs::remove_dir_all(disk.base.join("p/.git/worktrees/w")).expect("pruned");
        refuses("w");
        let dir = Some(Path::new("../p/.coordination"));
        disk.start("w", |start| Location::of(&Start { dir, ..start }))
            .may_create()
            .expect("allowed by name");
    }

    #[test]
    fn outside_everything_the_start_directory_is_used() {
        let disk = Disk::with(&["home", "p"]);
        let location = disk.from("p");
        disk.is(&location, "p/.coordination", Source::StartDirectory);
        location.may_create().expect("allowed");
        let refusal = location.may_begin().expect_err("not by the way").to_string();
        assert!(refusal.contains("init_coordination") && refusal.contains("--dir"), "{refusal}");
    }

    #[test]
    fn a_board_is_made_by_the_way_where_the_project_is_known() {
        let disk = Disk::with(&["home", "p/src", "q"]).git("p");
        disk.from("p/src").may_begin().expect("a repository");
        let folder = disk.base.join("q");
        let named =
            disk.start("home", |start| Location::of(&Start { project: Some(&folder), ..start }));
        disk.is(&named, "q/.coordination", Source::StartDirectory);
        named.may_begin().expect("named");
        fs::create_dir(disk.base.join("q/.coordination")).expect("a board");
        disk.from("q").may_begin().expect("it is there");
        let home = disk.base.join("home");
        let of_home =
            disk.start("p", |start| Location::of(&Start { project: Some(&home), ..start }));
        assert!(of_home.may_create().is_err(), "never at home");
    }

    #[test]
    fn no_board_is_made_in_what_programs_keep_for_themselves() {
        let disk = Disk::with(&[
            "home/.codex/plugins/p",
            "home/.cache/x",
            "real/caches/y",
            "home/Library",
            "plugin/bin",
        ]);
        std::os::unix::fs::symlink(
            disk.base.join("real/caches"),
            disk.base.join("home/Library/Caches"),
        )
        .expect("a link");
        let disk = disk.git("home/.codex/plugins/p").git("plugin");
        let plugins = [None, Some(disk.base.join("plugin"))];
        let at = |cwd: &str, dir: Option<&Path>| {
            let plugins = [plugins[0].as_deref(), plugins[1].as_deref()];
            disk.start(cwd, |start| Location::of(&Start { dir, plugins, ..start }))
        };
        for cwd in [
            "home/.codex/plugins/p",
            "home/.cache/x",
            "home/.cache",
            "real/caches/y",
            "plugin/bin",
            "plugin",
        ] {
            let refusal = at(cwd, None).may_create().expect_err(cwd).to_string();
            assert!(refusal.contains("COORDINATION_DIR"), "{refusal}");
            assert!(
                at(cwd, Some(Path::new(".coordination"))).may_create().is_err(),
                "a relative name in {cwd}"
            );
            at(cwd, Some(&disk.base.join("p/.coordination"))).may_create().expect("named");
        }
        at("real", None).may_create().expect("above them");
    }

    #[test]
    fn no_board_is_made_where_nobody_can_be_told() {
        use std::os::unix::ffi::OsStrExt;
        let disk = Disk::with(&["home", "p"]);
        let dir = disk.base.join(OsStr::from_bytes(b"caf\xe9"));
        fs::create_dir(&dir).expect("a directory");
        let here = disk.start("p", |start| Location::of(&Start { cwd: &dir, ..start }));
        here.may_create().expect("nobody needs its name");
        let named = disk.start("p", |start| Location::of(&Start { dir: Some(&dir), ..start }));
        let refusal = named.may_create().expect_err("refused").typed();
        assert!(refusal.contains("UTF-8"), "{refusal}");
    }

    #[test]
    fn a_linked_worktree_in_what_a_program_keeps_uses_the_main_worktrees_board() {
        let disk = Disk::with(&["home/.codex/worktrees/w"])
            .git("p")
            .linked("p", "home/.codex/worktrees/w");
        let location = disk.from("home/.codex/worktrees/w");
        disk.is(&location, "p/.coordination", Source::Repository);
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
