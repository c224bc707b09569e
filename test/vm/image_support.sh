# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the tests of flamed's image share, for scripts that have `here`, this folder, and `build_dir`. They define die().

# shellcheck disable=SC2154  # see above
readonly work_dir=$build_dir/vm-image
# Of the machine that runs the image: engines as they are today. The seccomp profile of Debian 12's Docker allows bpf to
# CAP_SYS_ADMIN alone.
readonly engines_suite=trixie

check_tools() {
  need_root_and_tools
  python3 -c 'import yaml' 2>/dev/null || die "this needs Python's yaml: apt-get install python3-yaml"
  mkdir -p "$work_dir"
}

make_engines_tree() { # make_engines_tree TREE
  make_bootable_tree "$engines_suite" docker.io,docker-cli,containerd,apparmor,busybox-static "$work_dir" "$1"
}

# The image's files, kept until the package or the recipe changes; its name is printed.
make_image() {
  local suite package image
  suite=$("$here/image.py" suite)
  package=$(echo "$build_dir/package/$suite"/flamed_*.deb)
  [[ -e $package ]] || die "no package in $build_dir/package/$suite: run ./dev test package/$suite first"
  image=$work_dir/image-$(cat "$package" "$here/../../container/Dockerfile" | sha256sum | cut -c1-12).tar
  if [[ ! -e $image ]]; then
    rm -f "$work_dir"/image-*.tar
    "$here/make_image.sh" "$suite" "$package" "$image" >&2
  fi
  echo "$image"
}

# Boots the tree WORK_DIR/NAME, which is then gone, with guest.sh in it. The log is beside it.
run_in_machine() { # run_in_machine NAME
  local files=$work_dir/$1 log=$work_dir/$1.log
  cp "$files"/boot/vmlinuz-* "$work_dir/vmlinuz"
  cp "$files"/boot/initrd.img-* "$work_dir/initrd"
  make_disk_of "$files" "$files.disk"
  rm -rf --one-file-system "$files"
  rm -f "$log" "$log.console"
  boot "$files.disk" "$work_dir/vmlinuz" "$work_dir/initrd" "$log"
  [[ ${VM_KEEP:-} == 1 ]] || rm -f "$files.disk"
  has_passed "$log"
}
