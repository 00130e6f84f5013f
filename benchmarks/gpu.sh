#!/usr/bin/env bash
# Measures what decoding and its masks cost on a GPU, in parts that go on where they stopped; docs/gpu.md.
#
#   bash benchmarks/gpu.sh wheels DIR                            where pip reaches an index: fill DIR (29 MB)
#   bash benchmarks/gpu.sh check --wheels DIR --out DIR          there too: can these wheels go on with that folder?
#   bash benchmarks/gpu.sh [--wheels DIR] [--out DIR] [--within SECONDS] [PART[=SECONDS] ...]
#                                                                where the GPU is: kernels decode cold share
#   bash benchmarks/gpu.sh --out DIR --show                      the page of what is stored
#
# The GPU's machine needs Python 3.11 or later with torch (2.11 or later, with CUDA), triton and transformers;
# everything else is in the wheels (for Python 3.12 on x86-64; PYTHON_OF_WHEELS=3.13 for another). Without
# --wheels the backends and this project must be installed there. First comes the part smoke, at most 70
# seconds: what fails there ends it, unless --anyway is given. Each part takes at most its seconds (480) and 60
# more: a cell is told to end 45 after them, and killed 15 later; --within ends the whole call, counted from its
# start. The same command goes on. It measures on --device cuda unless told otherwise; --show needs neither a GPU
# nor wheels. PYTHON names the interpreter (python3). All else goes to benchmarks/gpu.py, which has the exit
# codes: 0 done; 1 worse than asked; 2 wrong input, or the smoke failed; 3 not complete.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
python=${PYTHON:-python3}

# What the backends and this project need besides torch, triton, transformers and what those bring
# (numpy, packaging, regex, typing-extensions): nothing here pulls torch, because of --no-deps.
packages=(
  xgrammar apache-tvm-ffi pydantic pydantic-core annotated-types typing-inspection typing-extensions
  llguidance outlines-core
  mistral-common tiktoken regex
  jsonschema jsonschema-specifications jsonschema-rs referencing rpds-py attrs
  pyperf psutil packaging setuptools
)

wrong() {
  echo "gpu.sh: $1" >&2
  exit 2
}

fill() {
  local folder=$1 version=${PYTHON_OF_WHEELS:-3.12} platforms=()
  # pip matches each platform exactly, so the older ones are named too.
  for platform in 2_35 2_34 2_31 2_28 2_27 2_24 2_17; do
    platforms+=(--platform "manylinux_${platform}_x86_64")
  done
  platforms+=(--platform manylinux2014_x86_64 --platform manylinux1_x86_64)
  # Beside old wheels those of another version would come, and pip installs neither of two.
  ! compgen -G "$folder/*.whl" > /dev/null || wrong "$folder holds wheels already; remove them: rm $folder/*.whl"
  mkdir -p "$folder"
  "$python" -m pip download --quiet --no-deps --only-binary=:all: --python-version "$version" --implementation cp \
    "${platforms[@]}" --constraint "$root/constraints.txt" --dest "$folder" "${packages[@]}" \
    || wrong "pip cannot fetch the wheels for Python $version"
  du -sh "$folder"
}

# Prints the first error that pip wrote, or else its last line.
said() {
  grep -m 1 ERROR "$1" || tail -n 1 "$1"
}

# Installs wheels and this checkout into a folder of its own and puts it first on Python's path. A virtual
# environment would not do: one that is made by the interpreter of another does not see that one's torch.
install() {
  local folder=$1
  made=$(mktemp -d)
  trap 'rm -rf "$made"' EXIT
  local site=$made/wheels own=$made/own copy=$made/copy
  mkdir "$copy"
  "$python" -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir --target "$site" "$folder"/*.whl \
    2> "$made/said" || wrong "pip cannot install the wheels of $folder: $(said "$made/said")"
  # The build has a folder of its own, because setuptools writes beside what it builds.
  cp -r "$root"/{harness,adapters,suites,reports,pyproject.toml,setup.py,README.md,LICENSE} "$copy"
  mkdir "$copy/results"
  cp "$root"/results/*.* "$copy/results"
  PYTHONPATH="$site" "$python" -m pip install --quiet --no-index --no-deps --no-compile --no-cache-dir \
    --no-build-isolation --target "$own" "$copy" 2> "$made/said" || wrong "pip cannot install this project: $(said "$made/said")"
  export PYTHONPATH="$own:$site${PYTHONPATH:+:$PYTHONPATH}"
}

# Refuses wheels that the machine with this Python and processor cannot install, and results in the folder that
# the call cannot go on with, and says what was compared: before anything is installed, here or there.
check() {
  "$python" -P "$root/benchmarks/parts/gpu_wheels.py" "$wheels" "$out" "$on" "$1" "$2" "${packages[@]}" || exit 2
}

# Says what is missing, and the hint, before anything is imported.
look() {
  local hint=$1 missing
  shift
  missing=$("$python" -P -c '
import sys
from importlib.util import find_spec
print(*(name for name in sys.argv[1:] if find_spec(name.partition(".")[0]) is None))' "$@") || wrong "$python does not run"
  [[ -z $missing ]] || wrong "$python has no $missing; $hint (docs/gpu.md)"
}

if [[ ${1:-} == wheels ]]; then
  [[ -n ${2:-} ]] || wrong "give the folder to fill: gpu.sh wheels DIR"
  fill "$2"
  exit
fi

only_check=''
if [[ ${1:-} == check ]]; then
  only_check=yes
  shift
fi
wheels='' out=$root/results/runs/gpu within='' shown='' rest=() on=cuda device=(--device cuda)
while (($#)); do
  case $1 in --wheels=* | --out=* | --within=*) set -- "${1%%=*}" "${1#*=}" "${@:2}" ;; esac
  case $1 in
    --wheels | --out)
      [[ -n ${2:-} ]] || wrong "$1 needs a folder"
      [[ $1 == --out ]] && out=$2 || wheels=$2
      shift 2
      ;;
    --within)
      [[ ${2:-} =~ ^[0-9]+$ ]] || wrong "--within needs a number of seconds"
      within=$2
      shift 2
      ;;
    --device)
      [[ -n ${2:-} ]] || wrong "--device needs cuda or cpu"
      on=$2 device=() && rest+=("$1" "$2") && shift 2
      ;;
    --device=*) on=${1#*=} device=() && rest+=("$1") && shift ;;
    --show) shown=yes device=() && rest+=("$1") && shift ;;
    -h | --help) sed -n '2,17s/^# \{0,1\}//p' "$0"; exit ;;
    *) rest+=("$1"); shift ;;
  esac
done
if [[ -n $only_check ]]; then
  [[ -n $wheels ]] || wrong "check needs --wheels and --out"
  check "${PYTHON_OF_WHEELS:-3.12}" x86_64
  exit
fi
needed=(harness xgrammar llguidance pyperf)
if [[ -n $shown ]]; then
  needed=(harness)
elif [[ -n $wheels ]]; then
  here=$("$python" -Pc 'import platform, sys; print("%d.%d" % sys.version_info[:2], platform.machine())') \
    || wrong "$python does not run"
  check "${here% *}" "${here#* }"
fi
[[ -n $shown ]] || look "install it there" torch transformers numpy
[[ -z $wheels ]] || install "$wheels"
look "give --wheels, or install the project there" "${needed[@]}"
export PYTHONUNBUFFERED=1
[[ -z $within ]] || rest+=(--within "$((within > SECONDS ? within - SECONDS : 0))") # what this shell took is over
"$python" "$root/benchmarks/gpu.py" --out "$out" "${device[@]}" "${rest[@]}" &
script=$!
# Told to end, it ends what it measures first; told so again, this shell waits for it all the same.
trap 'trap "" INT TERM; kill "$script"' INT TERM
wait "$script" || true # until it ends, or until we are told to end
wait "$script"
