mkdir -p etc/apt.conf.d etc/preferences.d etc/sources.list.d etc/trusted.gpg.d
mkdir -p state/lists/partial cache/archives/partial log
touch state/status
echo 'deb [trusted=yes] http://mirror.example.org/apt ./' >etc/sources.list
cat >apt.conf <<END
Dir::Etc "$HOME/etc";
Dir::State "$HOME/state";
Dir::State::status "$HOME/state/status";
Dir::Cache "$HOME/cache";
Dir::Log "$HOME/log";
Acquire::Languages "none";
END
