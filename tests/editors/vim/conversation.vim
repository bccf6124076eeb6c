vim9script
# A whole conversation by Vim, with the settings that docs/editors.md shows. Prints one JSON object a step, to fd 3.
# usage: vim -S sidecar.vim -S conversation.vim, with the file in $FILE, the inputs in $STALLS and $ASKS.
# The keyboard is feedkeys(); what the settings do with a message is left as it is, and only watched.

const SETTINGS = getscriptinfo({name: 'sidecar.vim'})[0].sid
const Take = function($'<SNR>{SETTINGS}_Take')
const ALLOWS = '1 Allow once'
const ALLOW = "1\<CR>"
var taken: list<dict<any>>
var codes: list<number>

def Say(step: string, value: any)
  writefile([json_encode({step: step, value: value})], '/dev/fd/3', 'a')
enddef

def Wait(what: string, Condition: func(): bool)
  const begin = reltime()
  while !Condition()
    if reltimefloat(reltime(begin)) > 20
      throw $'waited in vain for {what}'
    endif
    sleep 5m
  endwhile
enddef

def Server(): job
  return job_info()->filter((_, job) => job_status(job) == 'run')[0]
enddef

def Watched(_: channel, message: dict<any>)
  add(taken, message)
  Take(message)
enddef

# Begin again to watch: the settings have started a sidecar.
def Watch()
  taken = []
  ch_setoptions(Server(), {out_cb: Watched})
enddef

def Sent(method: string): list<any>
  return copy(taken)->filter((_, message) => message.method == method)->mapnew((_, message) => message.params)
enddef

# The lines of the popups, the newest last.
def Shown(): list<string>
  return popup_list()->mapnew((_, id) => getbufline(winbufnr(id), 1, '$')->join("\n"))
enddef

# Until the sidecar has said it; before that, progress may have shown as much.
def WaitSaid(text: string)
  Wait(text, () => !empty(Said()) && stridx(Said()[-1], text) >= 0)
enddef

def Said(): list<string>
  return Sent('window/showMessage')->mapnew((_, params) => params.message)
enddef

def Request(method: string, params: dict<any>): func(): any
  var reply: dict<any>
  ch_sendexpr(Server(), {method: method, params: params}, {callback: (_, message) => extend(reply, message)})
  return () => {
    Wait($'the answer to {method}', () => !empty(reply))
    if has_key(reply, 'error')
      throw $'{method}: {reply.error.message}'
    endif
    return reply.result
  }
enddef

def Run(input: string): func(): any
  return Request('run', {sessionId: 'vim', input: input})
enddef

# As Vim ends; then the exit code.
def End(): number
  const job = Server()
  doautocmd VimLeavePre
  Wait('the end', () => job_status(job) == 'dead')
  return job_info(job).exitval
enddef

def Converse()
  edit $FILE
  feedkeys("ounsaved, 😋\<Esc>", 'xt')
  SidecarState
  Watch()
  WaitSaid('1 open documents')

  # The user's own commands.
  Sidecar hello there
  WaitSaid('You said: hello there')
  Say('message', Sent('window/showMessage')[-1])
  Say('shown', Shown())
  execute $'Sidecar {$STALLS}'
  Wait('the beginning', () => Shown() == ['Once upon a time'])
  SidecarCancel
  WaitSaid('(cancelled)')
  Say('progress', Sent('$/progress')->mapnew((_, params) => params.value.kind))
  feedkeys("\<Esc>", 'xt')
  Say('closed', popup_list())
  Say('silent', empty(Sent('run/event')))

  # Explain and fix.
  :1SidecarExplain
  WaitSaid('It is a note.')
  :1SidecarFix
  feedkeys($"o\<Cmd>call {expand('<SID>')}WaitAsked()\<CR>1\<CR>\<Esc>", 'xt')
  Say('typed', getline(1, '$'))
  undo
  Say('fix', Asked("\<Esc>"))
  WaitSaid('rejected')
  Say('unmended', getline(1, '$'))
  &undolevels = &undolevels   # keys of a user would end the change before
  Fix(ALLOW)
  Say('mended', getline(1, '$'))
  undo
  Say('undone', getline(1, '$'))
  Say('stale', Fix(ALLOW, () => setline(2, 'changed meanwhile')))
  Say('kept', getline(1, '$'))
  doautocmd TextChanged       # as after a key
  SidecarAnswers
  Say('answers', [&buftype] + getline(1, '$'))
  close

  # The sidecar's own methods, over the same channel.
  Say('createSession', Request('createSession', {sessionId: 'vim'})().session.cwd)
  const hello = Run('hello')()
  Say('run', hello.text)
  Say('explainRun', Request('explainRun', {sessionId: 'vim', runId: hello.runId})())
  Say('allowed', Answer(ALLOW))
  Say('dismissed', Answer("1\<Esc>"))
  Say('rejected', Answer("\<CR>"))
  Say('always', [Answer("G\<CR>"), Run($ASKS)().text])
  const Story = Run($STALLS)
  Wait('the run', () => Sent('run/event')[-1].type == 'message.delta')
  Request('cancelRun', {sessionId: 'vim'})()
  Say('cancelled', Story().status)
  Say('live', Sent('run/event'))

  # Another sidecar, and all of it again.
  Say('exit', End())
  SidecarState
  Watch()
  WaitSaid('no session yet')
  const resumed = Request('resumeSession', {sessionId: 'vim', replayFrom: {type: 'start'}})()
  Wait('the replay', () => get(get(Sent('run/event'), -1, {}), 'seq') == resumed.lastSeq)
  Say('replayed', Sent('run/event'))
  Say('exitAgain', End())
  Say('errors', [v:errmsg] + Sent('window/showMessage')->filter((_, params) => params.type == 1))
  Say('messages', execute('messages')->split("\n"))
enddef

# The question that is asked, and is answered by keys.
def Asked(keys: string, Meanwhile: func = () => 0): string
  WaitAsked()
  const question = Shown()[match(Shown(), ALLOWS)]
  Meanwhile()
  feedkeys(keys, 'xt')
  return question
enddef

def WaitAsked()
  Wait('the question', () => match(Shown(), ALLOWS) >= 0)
enddef

# A call that needs consent; what the run said.
def Answer(keys: string): string
  const Result = Run($ASKS)
  Say('question', Asked(keys))
  return Result().text
enddef

# The first line mended, where keys allow it; question and answer.
def Fix(keys: string, Meanwhile: func = () => 0): list<string>
  const before = len(Said())
  :1SidecarFix
  const question = Asked(keys, Meanwhile)
  Wait('the end', () => len(Said()) > before)
  return [question, Said()[-1]]
enddef

try
  Converse()
  qall!
catch
  writefile([v:exception, v:throwpoint] + Shown(), '/dev/stderr')
  cquit
endtry
